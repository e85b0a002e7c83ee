#!/usr/bin/env bash
source tools/cli_test.sh "$@"
PROBE=$PWD/tools/nvtx_probe
REPORT=$PWD/tools/trace_report

unset FASTVIDEO_TORCH_PROFILE_REGIONS FASTVIDEO_TORCH_PROFILER_DIR RANK

one() { ls "$1"/*.pt.trace.json.gz 2>/dev/null | head -n 1; }

expect 2 "no command" "$TOOL"
err_has 'expected -- COMMAND'
expect 2 "a missing program" "$TOOL" --dir="$TMP/x" --all -- /no/such/program
err_has '/no/such/program: No such file'
expect 2 "a missing injection" "$TOOL" --inject=/no/such.so --all -- true
err_has 'no such file'

# Regions from the program's NVTX ranges; the exit status and streams are its own.
expect 7 "regions" "$TOOL" --dir="$TMP/a" --regions=inference_denoising,training_step -- "$PROBE" exit 7
out_is_empty
err_has 'inference_denoising +1 x'
err_has "warning: region 'training_step' was requested and never entered"
err_has 'next: trace_report .*pt.trace.json.gz'
A=$(one "$TMP/a")
[ -n "$A" ] || fail "no trace"
zcat "$A" >"$TMP/a.json"
json_valid "$TMP/a.json"
grep -q '"name": "fastvideo.region::inference_denoising"' "$TMP/a.json" || fail "no region"
grep -q '"name": "step"' "$TMP/a.json" || fail "no span inside the region"
grep -q '"name": "outside"' "$TMP/a.json" && fail "a span from outside"
grep -q '"rank": 0' "$TMP/a.json" || fail "no rank"
json_valid "$TMP/a/summary_rank0.json"
grep -q 'inference_denoising' "$TMP/a/summary_rank0.txt" || fail "no summary"
expect 0 "what it wrote is valid" "$REPORT" --validate=perfetto,tensorboard "$A"
expect 0 "the stream, too" "$REPORT" --validate=perfetto "${A%.pt.trace.json.gz}.pftrace"

# Ranges that start and end apart, wide strings, patterns.
expect 0 "patterns" "$TOOL" --dir="$TMP/b" --regions='model_*' -- "$PROBE"
zcat "$(one "$TMP/b")" >"$TMP/b.json"
grep -q 'fastvideo.region::model_loading' "$TMP/b.json" || fail "no model_loading"
grep -q '"name": "wide 解"' "$TMP/b.json" || fail "no wide name"

# From the environment; a typo is named and ignored.
expect 0 "variables" env FASTVIDEO_TORCH_PROFILE_REGIONS=model_loading,inference_denoisin \
  FASTVIDEO_TORCH_PROFILER_DIR="$TMP/c" RANK=5 "$TOOL" -- "$PROBE"
err_has "'inference_denoisin' is not registered and is ignored; did you mean 'inference_denoising'"
[ -s "$TMP/c/summary_rank5.json" ] || fail "the rank was not taken from RANK"
expect 0 "nothing selected" "$TOOL" --dir="$TMP/d" --regions= -- "$PROBE"
err_has 'nothing is collected'

# A killed program leaves what was drained; its status is passed on.
expect 137 "SIGKILL" "$TOOL" --dir="$TMP/e" --regions='*' -- "$PROBE" kill
err_has 'signal 9'
err_has 'did not end in order'
zcat "$(one "$TMP/e")" >"$TMP/e.json"
json_valid "$TMP/e.json"
grep -q 'fastvideo.region::inference_denoising' "$TMP/e.json" || fail "lost at SIGKILL"

# Signals reach the program.
"$TOOL" --dir="$TMP/f" --all -- "$PROBE" term >"$OUT" 2>"$ERR" &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
[ $? -eq 143 ] || fail "SIGTERM was not passed on"

# Programs that it executes are recorded, each on its own.
expect 0 "children" "$TOOL" --dir="$TMP/g" --regions='inference*' -- "$PROBE" exec "$PROBE"
err_has ', 2 processes'
[ "$(ls "$TMP"/g/*.pt.trace.json.gz | wc -l)" -eq 2 ] || fail "expected two traces"

# So are those that it forks and that leave without a word.
expect 0 "forked children" "$TOOL" --dir="$TMP/j" --regions='inference*,training_step' -- "$PROBE" fork
err_has ', 2 processes'
for trace in "$TMP"/j/*.pt.trace.json.gz; do zcat "$trace" >"${trace%.gz}"; done
in_child=$(grep -l '"name": "in the child"' "$TMP"/j/*.pt.trace.json | wc -l)
[ "$in_child" -eq 1 ] || fail "the child's span is in $in_child traces"
stepping=$(grep -l 'fastvideo.region::training_step' "$TMP"/j/*.pt.trace.json | wc -l)
[ "$stepping" -eq 1 ] || fail "the parent's region is in $stepping traces"
ls "$TMP"/j/summary_rank0_*.txt >/dev/null || fail "one summary for two processes"

# A registry of the user's own: its aliases hold in the program too.
expect 2 "a missing registry" "$TOOL" --registry=/no/such -- "$PROBE"
cat >"$TMP/registry" <<'TEXT'
region { name: "my_step" alias: "step" }
TEXT
expect 0 "aliases" "$TOOL" --registry="$TMP/registry" --dir="$TMP/k" --regions=my_step -- "$PROBE"
err_has 'my_step +1 x'
grep -q 'never entered' "$ERR" && fail "an alias that did not count"

# Steps for the views that count by them.
expect 0 "--steps" "$TOOL" --dir="$TMP/l" --regions='inference*' --steps='inference_*' -- "$PROBE"
zcat "$(one "$TMP/l")" >"$TMP/l.json"
grep -q '"name": "ProfilerStep#0"' "$TMP/l.json" || fail "no step"

# A program with a device, with stand-ins for the driver and CUPTI.
FAKES=$PWD/lib/profiler/testprogram
gpu_program() { echo "$PROBE" launch "$FAKES/libfake_cuda.so" "$FAKES/libfake_cupti.so" "$1"; }
kernels_of() { # DIR
  zcat "$(one "$1")" >"$1/trace.json"
  json_valid "$1/trace.json"
  grep -o '"cat": "kernel", "name": "[a-z]*()' "$1/trace.json" | sed 's/.*"//' | sort | uniq -c | tr -s ' \n' ' '
}
expect 0 "kernels" "$TOOL" --dir="$TMP/m" --regions='inference*' -- $(gpu_program exit)
err_has 'inference_denoising +1 x .* 3 GPU events'
err_has 'kept 3 GPU events, 3 API calls, 1 spans; left out 2 made outside of regions; dropped 0'
[ "$(kernels_of "$TMP/m")" = " 2 inside() 1 threaded() " ] || fail "kernels: $(kernels_of "$TMP/m")"
grep -q '"cat": "gpu_user_annotation", "name": "fastvideo.region::inference_denoising"' "$TMP/m/trace.json" ||
  fail "no row above the kernels"
for call in cudaLaunchKernel:2 cuLaunchKernel:1; do
  [ "$(grep -c "\"name\": \"${call%:*}\"" "$TMP/m/trace.json")" -eq "${call#*:}" ] || fail "calls: not $call"
done
grep -q '"name": *"Fake GPU"' "$TMP/m/trace.json" || fail "no device properties"
expect 0 "which all readers take" "$REPORT" --validate=perfetto,hta,tensorboard "$(one "$TMP/m")"
expect 0 "calls by CUPTI's records" env FIRSTFRAME_PROFILE_CALLS=records \
  "$TOOL" --dir="$TMP/q" --regions='inference*' -- $(gpu_program exit)
err_has 'kept 3 GPU events, 3 API calls, 1 spans; left out 2 made outside of regions; dropped 0'
[ "$(kernels_of "$TMP/q")" = " 2 inside() 1 threaded() " ] || fail "records: $(kernels_of "$TMP/q")"
expect 0 "all kernels" "$TOOL" --dir="$TMP/n" --all -- $(gpu_program exit)
[ "$(kernels_of "$TMP/n")" = " 1 after() 1 before() 2 inside() 1 threaded() " ] || fail "--all: $(kernels_of "$TMP/n")"

# Killed: all that CUPTI was asked for is in both files.
expect 137 "SIGKILL after kernels" "$TOOL" --dir="$TMP/o" --regions='inference*' -- $(gpu_program kill)
err_has 'did not end in order'
err_has 'kept 3 GPU events'
[ "$(kernels_of "$TMP/o")" = " 2 inside() 1 threaded() " ] || fail "killed: $(kernels_of "$TMP/o")"
grep -q '"name": *"Fake GPU"' "$TMP/o/trace.json" || fail "no device properties after SIGKILL"
[ -s "$TMP/o/summary_rank0.json" ] || fail "no summary after SIGKILL"

# Somebody else has CUPTI: it is named, and CUDA events stand in.
expect 0 "CUPTI held" env FAKE_CUPTI_HOLDER="Nsight Systems" \
  "$TOOL" --dir="$TMP/p" --regions='inference*' -- $(gpu_program exit)
err_has "CUPTI is held by 'Nsight Systems'; recording spans, and GPU time of regions by CUDA events"
err_has 'ms GPU time between CUDA events on the default stream'
[ -z "$(kernels_of "$TMP/p")" ] || fail "kernels without CUPTI"
grep -q '"cat": "gpu_user_annotation".*"measured by": *"CUDA events' "$TMP/p/trace.json" || fail "no region by events"
expect 0 "CUPTI that cannot be switched on" env FAKE_CUPTI_FAILS=1 \
  "$TOOL" --dir="$TMP/r" --regions='inference*' -- $(gpu_program exit)
err_has 'cuptiActivityEnable: FAKE_ERROR; recording spans, and GPU time of regions by CUDA events'
err_has 'ms GPU time between CUDA events on the default stream'
expect 0 "valid without kernels" "$REPORT" --validate=perfetto,tensorboard "$(one "$TMP/p")"

expect 0 "a program without ranges" "$TOOL" --dir="$TMP/h" --all -- true
err_has 'nothing was recorded'
expect 0 "--quiet" "$TOOL" --quiet --dir="$TMP/i" --all -- "$PROBE"
err_is_empty
mkdir -p "$TMP/file" && : >"$TMP/file/x"
expect 0 "a folder that cannot be made" "$TOOL" --dir="$TMP/file/x/y" --all -- "$PROBE"
err_has 'not recording this process'

check_contract
finish
