#!/bin/bash
source tools/cli_test.sh "$@"
GOLDEN=testdata/activation_trace
FP32=$GOLDEN/trace_cpu_fp32.jsonl.gz
BUG=$GOLDEN/trace_gpu_fp32_bug_conv1_2pct.jsonl.gz
gzip -dc $FP32 >"$TMP/fp32.jsonl"

check_contract

expect 0 "two devices" "$TOOL" $FP32 $GOLDEN/trace_gpu_fp32.jsonl.gz
out_has '^same$'
err_is_empty
expect 0 "float64" "$TOOL" $FP32 $GOLDEN/trace_cpu_fp64.jsonl.gz
expect 0 "bfloat16" "$TOOL" $FP32 $GOLDEN/trace_gpu_bf16.jsonl.gz
expect 1 "the scaled convolution" "$TOOL" $FP32 $BUG
out_has '^differ: first divergence at decoder\.up_blocks\.1\.resnets\.0\.conv1$'
expect 1 "--first" "$TOOL" --first $FP32 $BUG
out_has 'first divergence at decoder\.up_blocks\.1\.resnets\.0\.conv1$'
expect 1 "--explain" "$TOOL" --explain $FP32 $BUG
out_has '^decoder\.up_blocks\.1\.resnets\.0\.conv1 is the first to jump: '
[ "$(wc -l <"$OUT")" -eq 1 ] || fail "--explain is not one line"
expect 0 "a file and itself" "$TOOL" $FP32 $FP32
out_has '^identical$'

expect 1 "--format=jsonl" "$TOOL" --format=jsonl $FP32 $BUG
jsonl_valid "$OUT"
out_has '^\{"kind":"divergence",.*"module":"decoder\.up_blocks\.1\.resnets\.0\.conv1"'
expect 1 "--format=github" "$TOOL" --format=github $FP32 $BUG
out_has '^::error title=First divergence::decoder\.up_blocks\.1'
expect 1 "--html" "$TOOL" --html="$TMP/page.html" $FP32 $BUG
grep -q '<title>Activation traces compared' "$TMP/page.html" || fail "no page"

# Every tolerance changes an answer.
expect 1 "--threshold=exact" "$TOOL" --threshold=exact $FP32 $GOLDEN/trace_gpu_fp32.jsonl.gz
expect 1 "--threshold=fp32" "$TOOL" --threshold=fp32 $FP32 $GOLDEN/trace_gpu_bf16.jsonl.gz
expect 1 "--coherent_jump low" "$TOOL" --coherent_jump=0.5 $FP32 $GOLDEN/trace_gpu_bf16.jsonl.gz
expect 0 "--coherent_jump high" "$TOOL" --coherent_jump=1e6 $FP32 $BUG
expect 1 "--abs_mean_ceiling" "$TOOL" --coherent_jump=1e6 --abs_mean_ceiling=0.01 $FP32 $BUG
expect 0 "--control" "$TOOL" --threshold=fp32 --coherent_jump=100 --control=$GOLDEN/trace_gpu_bf16.jsonl.gz $FP32 $GOLDEN/trace_gpu_bf16.jsonl.gz

# Names of two repositories.
PORTS=testdata/activation_trace/ports
for model in wan hunyuan; do
  expect 0 "$model in two repositories" "$TOOL" --map=$model $PORTS/${model}_diffusers.jsonl.gz $PORTS/${model}_fastvideo.jsonl.gz
  expect 0 "$model, turned" "$TOOL" --map=$model $PORTS/${model}_fastvideo.jsonl.gz $PORTS/${model}_diffusers.jsonl.gz
  expect 1 "$model with a wrong weight" "$TOOL" --map=$model $PORTS/${model}_diffusers.jsonl.gz $PORTS/${model}_fastvideo_bug.jsonl.gz
  out_has '^differ: first divergence at (blocks\.1\.attn1\.to_k|transformer_blocks\.1\.attn\.to_v)$'
done
expect 2 "another model's map" "$TOOL" --map=cosmos $PORTS/wan_diffusers.jsonl.gz $PORTS/wan_fastvideo.jsonl.gz
expect 2 "a model that nearly is one" "$TOOL" --map=hunyuna $PORTS/wan_diffusers.jsonl.gz $PORTS/wan_fastvideo.jsonl.gz
err_has "did you mean 'hunyuan'"
expect 2 "a model and --map_right" "$TOOL" --map=wan --map_right=x $FP32 $FP32
expect 0 "--list_maps" "$TOOL" --list_maps
out_has "^wan +Wan 2\.1 and 2\.2: diffusers' WanTransformer3DModel to FastVideo's$"

# Files of several ranks.
cp "$TMP/fp32.jsonl" "$TMP/rank_0.jsonl" && cp "$TMP/fp32.jsonl" "$TMP/rank_1.jsonl"
expect 0 "a glob of ranks against itself" "$TOOL" "$TMP/rank_*.jsonl" "$TMP/rank_*.jsonl"
out_has '  922 pairs'
expect 0 "ranks against one file" "$TOOL" "$TMP/rank_*.jsonl" "$TMP/fp32.jsonl"
err_has 'holds 2 ranks'
expect 0 "one of the ranks" "$TOOL" --rank=1 "$TMP/rank_*.jsonl" "$TMP/fp32.jsonl"
expect 2 "a glob of nothing" "$TOOL" "$TMP/nothing_*.jsonl" "$TMP/fp32.jsonl"

# Trouble is never a pass.
: >"$TMP/empty.jsonl"
expect 2 "an empty side" "$TOOL" $FP32 "$TMP/empty.jsonl"
out_has '^undecided$'
head -c 100000 "$TMP/fp32.jsonl" >"$TMP/torn.jsonl"
expect 2 "a torn file" "$TOOL" "$TMP/fp32.jsonl" "$TMP/torn.jsonl"
err_has 'half-written'
expect 2 "torn, lenient, but records are missing" "$TOOL" --lenient "$TMP/fp32.jsonl" "$TMP/torn.jsonl"
err_has 'records missing on the right'
expect 0 "torn, lenient, missing allowed" "$TOOL" --lenient --max_unmatched=200 "$TMP/fp32.jsonl" "$TMP/torn.jsonl"
echo 'not a trace' >"$TMP/garbage"
expect 2 "no trace at all" "$TOOL" $FP32 "$TMP/garbage"

# Streams.
expect_stdin 0 "standard input" "$(cat "$TMP/fp32.jsonl")"$'\n' "$TOOL" - "$TMP/fp32.jsonl"
expect_stdin 2 "standard input twice" "" "$TOOL" - -
expect 0 "process substitution" "$TOOL" <(gzip -dc $FP32) <(cat "$TMP/fp32.jsonl")
out_has '^identical$'
expect 1 "compressed pipes" "$TOOL" <(cat $FP32) <(cat $BUG)
out_has '^differ: first divergence at decoder\.up_blocks\.1\.resnets\.0\.conv1$'
expect 1 "a pipe and a file" "$TOOL" --first "$TMP/fp32.jsonl" <(cat $BUG)
expect 1 "a file and a pipe, with a map and a control from pipes" "$TOOL" --map=<(echo 'a => b') \
  --control=<(cat $FP32) <(cat $FP32) $BUG
expect 2 "a pipe that breaks off" "$TOOL" <(head -c 100000 "$TMP/fp32.jsonl") "$TMP/fp32.jsonl"
err_has 'half-written'
expect 2 "a pipe that ends at once" "$TOOL" <(true) "$TMP/fp32.jsonl"
err_has 'no records to compare'
# One process writes two pipes line by line: neither may be read to its end before the other is opened.
mkfifo "$TMP/a" "$TMP/b"
awk -v a="$TMP/a" -v b="$TMP/b" '{ for (i = 0; i < 20; ++i) { print >a; print >b } }' "$TMP/fp32.jsonl" &
expect 0 "two pipes of one writer" timeout 60 "$TOOL" "$TMP/a" "$TMP/b"
wait
# An interrupt ends it by the signal, while it reads or waits, and leaves no file behind.
mkdir "$TMP/out"
expect 130 "interrupted" timeout --preserve-status -s INT 1 "$TOOL" --output="$TMP/out/report" \
  "$TMP/fp32.jsonl" "$TMP/a"
[ -z "$(ls -A "$TMP/out")" ] || fail "interrupted, but there is $(ls -A "$TMP/out")"
# A reader that has gone.
for ((i = 0; i < 20; ++i)); do cat "$TMP/fp32.jsonl"; done >"$TMP/long.jsonl"
"$TOOL" --all_rows --format=jsonl "$TMP/long.jsonl" "$TMP/long.jsonl" 2>"$ERR" | head -n 1 >"$OUT"
rc=${PIPESTATUS[0]}
[ "$rc" -eq 141 ] || fail "a closed pipe: exit $rc, expected 141"
err_is_empty
jsonl_valid "$OUT"
expect 2 "a missing file" "$TOOL" $FP32 /no/such/file
err_has '^trace_diff: .*cannot open /no/such/file'
expect 2 "one trace" "$TOOL" $FP32
err_has "expected two traces"
expect 2 "a wrong threshold" "$TOOL" --threshold=loose $FP32 $FP32
expect 2 "a jump of 0" "$TOOL" --coherent_jump=0 $FP32 $FP32
expect 2 "a missing map" "$TOOL" --map=/no/such/map $FP32 $FP32
echo 'nonsense' >"$TMP/map"
expect 2 "a malformed map" "$TOOL" --map="$TMP/map" $FP32 $FP32
err_has 'map line 1'
if [ -e /dev/full ]; then
  "$TOOL" $FP32 $FP32 >/dev/full 2>"$ERR"
  [ $? -eq 2 ] || fail "a full disk is not 2"
fi

finish
