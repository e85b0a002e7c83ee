#!/usr/bin/env bash
# vae_startup: the contract, a real (tiny) checkpoint, and what must be refused.
source tools/cli_test.sh "$@"

MODEL=testdata/wan_vae/tiny_vae
SMALL=(--threads=1 --frames=5 --height=16 --width=24)
export XDG_CACHE_HOME=$TMP/cache

check_contract
expect 2 "an argument" "$TOOL" model
err_has 'the model is --model_path'
expect 2 "frames that cannot be" "$TOOL" --model_path="$MODEL" --frames=4
err_has '1 \+ k \* 4'
expect 2 "too many threads" "$TOOL" --threads=2147483647
err_has 'expected at most 1024'
expect 2 "no frames" "$TOOL" --frames=0
err_has 'at least 1'
expect 2 "a device that is none" "$TOOL" --device=tpu
expect 2 "a missing model" "$TOOL" --model_path=/no/such/folder
err_has '/no/such/folder'
out_has 'checkpoint_residency'
expect 2 "a line end in a name" "$TOOL" --model_path=$'/no/such\nfolder'
[ "$(wc -l <"$ERR")" -eq 1 ] || fail "the message is not one line"
expect 2 "two latents" "$TOOL" --latent=x --latent_shape=1x16x1x2x2
err_has 'exclude each other'

expect 0 "text" "$TOOL" --model_path="$MODEL" "${SMALL[@]}"
err_is_empty
for phase in process.exec library_load device_setup process_group_setup component.vae vae.construct \
  vae.device_transfer vae.checkpoint_read vae.weight_assignment vae.finalize first_decode; do
  out_has "$phase"
done
out_has 'output \[1, 3, 5, 16, 24\], finite'

expect 0 "JSON" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --format=json --warm_decodes=2
json_valid "$OUT"
out_has '"cuda_initialized_before_device_setup": ?false'
out_has '"fingerprint_sha256": ?"[0-9a-f]{64}"'
out_has '"source": ?"local"'
[ "$(grep -c '"name": *"warm_decode"' "$OUT")" -ge 2 ] || fail "no warm decodes"
expect 0 "offload cycles" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --device=cpu --format=json --offload_cycles=2
json_valid "$OUT"
out_has '"is_identical": ?true'
[ "$(grep -c '"name": *"offload.load"' "$OUT")" -ge 2 ] || fail "no offload cycles"
expect 2 "negative offload cycles" "$TOOL" --model_path="$MODEL" --offload_cycles=-1
MASTER_ADDR=node7 MASTER_PORT=29533 RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 \
  expect 0 "a launcher's rendezvous" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --format=json
out_has '"source": ?"launcher"'
out_has '"port": ?29533'

VIDEOX_PERF=1 VIDEOX_PERF_JSON=$TMP/perf.jsonl VIDEOX_PERF_WARMUP=1 VIDEOX_PERF_PEAK_TFLOPS=1 \
  expect 0 "request records" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --warm_decodes=2
jsonl_valid "$TMP/perf.jsonl"
[ "$(grep -c '"kind": *"request"' "$TMP/perf.jsonl")" -eq 3 ] || fail "not one record a decode"
grep -q '"vae"' "$TMP/perf.jsonl" || fail "the record prices no VAE"

# Results in files; the same run again is equal, another seed is not.
for form in safetensors npy pt; do
  expect 0 "--tensor_output=$form" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --tensor_output="$TMP/a.$form" \
    --trace_out="$TMP/a.pftrace" --html="$TMP/a.html"
  [ -s "$TMP/a.$form" ] || fail "no $form"
done
[ -s "$TMP/a.pftrace" ] || fail "no trace"
grep -q '<html' "$TMP/a.html" || fail "no page"
for form in safetensors npy; do
  expect 0 "--compare equal ($form)" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --compare="$TMP/a.$form" --rtol=0 --atol=0
  err_has 'within tolerance'
  expect 1 "--compare another seed" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --compare="$TMP/a.$form" --seed=1
  err_has 'outside the tolerance'
done
expect 1 "--compare another shape" "$TOOL" --model_path="$MODEL" --threads=1 --frames=1 --height=16 --width=24 \
  --compare="$TMP/a.npy"
err_has 'other shape'
expect 2 "a tensor file of no kind" "$TOOL" --tensor_output="$TMP/a.bin"
expect 2 "--compare a missing file" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --compare=/no/such.npy

# Processes of their own.
expect 0 "--runs" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --runs=2 --cache=warm
out_has 'median ms'
out_has 'exec to exit'
expect 0 "--runs, JSON" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --runs=2 --format=json
json_valid "$OUT"
out_has '"launched_wall_ns"'
out_has '"is_exact": ?true'
if [ -d /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
  cp -rL "$MODEL" /dev/shm/firstframe_cli_test.$$
  expect 2 "cold where nothing can be" "$TOOL" --model_path=/dev/shm/firstframe_cli_test.$$ "${SMALL[@]}" --cache=cold
  err_has 'would not be cold'
  rm -rf /dev/shm/firstframe_cli_test.$$
fi

expect 2 "NCCL on the CPU" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --device=cpu --process_group=nccl
err_has 'process group nccl'

# Activation traces, as FastVideo's variables ask for them.
FASTVIDEO_TRACE_ACTIVATIONS=1 FASTVIDEO_TRACE_LAYERS='decoder\.conv_(in|out)$' FASTVIDEO_TRACE_OUTPUT="$TMP/trace.jsonl" \
  expect 0 "an activation trace" "$TOOL" --model_path="$MODEL" "${SMALL[@]}"
err_has 'attached'
[ "$(grep -c '"module": ?"decoder.conv_' -E "$TMP/trace.jsonl")" -eq 4 ] || fail "a trace of two modules over two chunks: $(wc -l <"$TMP/trace.jsonl") lines"

# No GPU here: the message names what is missing.
if [ ! -e /dev/nvidiactl ]; then
  expect 3 "--device=cuda without a GPU" "$TOOL" --model_path="$MODEL" "${SMALL[@]}" --device=cuda --format=json
  json_valid "$OUT"
  out_has '"status": ?"error"'
  err_has 'CUDA|driver|GPU'
fi

# A report is written also when the run is interrupted or a phase fails.
"$TOOL" --model_path="$MODEL" --threads=1 --frames=81 --height=256 --width=256 --format=json >"$OUT" 2>"$ERR" &
pid=$!
sleep 1
kill -INT $pid
wait $pid
[ $? -eq 2 ] || fail "Ctrl-C: not exit 2"
json_valid "$OUT"
out_has '"status": ?"error"'
cp -rL "$MODEL" "$TMP/broken"
chmod -R u+w "$TMP/broken"
head -c 30000 "$MODEL/diffusion_pytorch_model.safetensors" >"$TMP/broken/diffusion_pytorch_model.safetensors"
expect 2 "a truncated checkpoint" "$TOOL" --model_path="$TMP/broken" "${SMALL[@]}"
out_has 'vae.checkpoint_read'
err_has 'diffusion_pytorch_model.safetensors'
"$TOOL" --model_path="$MODEL" "${SMALL[@]}" >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a full disk: not exit 2"
finish
