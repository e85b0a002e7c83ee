#!/usr/bin/env bash
source tools/cli_test.sh "$@"
unset VIDEOX_PERF_PEAK_TFLOPS

expect 2 "no model" "$TOOL"
err_has 'expected one MODEL'
expect 2 "an unknown model" "$TOOL" wan2.1-t2v-14
err_has "did you mean 'wan2.1-t2v-14b'"
expect 2 "a size that is none" "$TOOL" wan-tiny --frames=0
err_has 'latent frames is 0'
expect 2 "a word that is no choice" "$TOOL" wan-tiny --train=some
expect 2 "no time" "$TOOL" wan-tiny --time_ms=0
err_has 'must be positive'

expect 0 "--list" "$TOOL" --list
out_has '^wan2.1-t2v-14b +WanTransformer3DModel +14288491584 parameters$'
expect 0 "--list as JSON" "$TOOL" --list --format=json
json_valid "$OUT"
expect 0 "--peaks" "$TOOL" --peaks
out_has '^H200 SXM +67 +494.5 +989 +1979 +4800 '
expect 0 "--peaks as JSON" "$TOOL" --peaks --format=json
json_valid "$OUT"

# torch counts 283001787777024 on this forward (testdata/flops).
expect 0 "a forward" "$TOOL" wan2.1-t2v-1.3b --format=json
json_valid "$OUT"
out_has '"forward_flops": 283001787777024,'
out_has '"aten.bmm": 200907089510400,'
expect 0 "text" "$TOOL" wan2.1-t2v-1.3b
out_has '^    self_attn_core +1.97815e\+14 +69\.9%$'

expect 0 "utilisation" "$TOOL" wan2.1-t2v-1.3b --steps=50 --cfg --time_ms=100000 --device_name='NVIDIA H200'
out_has '^  MFU +28\.61% = 2\.83002e\+16 / \(100 s x 989 TFLOPS x 1 device\)$'
out_has 'compute bound'
expect 0 "an unknown device" "$TOOL" wan-tiny --time_ms=5 --device_name='NVIDIA GeForce RTX 4090 Laptop GPU'
out_has "n/a: no peak for device 'NVIDIA GeForce RTX 4090 Laptop GPU': laptop boards"
expect 0 "an impossible time" "$TOOL" wan2.1-t2v-14b --time_ms=1 --peak_tflops=989
out_has 'over 100%'
expect 0 "the peak from the environment" env VIDEOX_PERF_PEAK_TFLOPS=1000 "$TOOL" wan-tiny --time_ms=5
out_has 'peak from +VIDEOX_PERF_PEAK_TFLOPS'
expect 2 "a peak that is none" "$TOOL" wan-tiny --time_ms=5 --peak_tflops=nan
err_has 'peak_tflops is nan, expected a positive number'
expect 2 "no peak in the environment" env VIDEOX_PERF_PEAK_TFLOPS=fast "$TOOL" wan-tiny --time_ms=5
err_has "VIDEOX_PERF_PEAK_TFLOPS is 'fast', expected a number"
expect 0 "a training step" "$TOOL" wan2.1-t2v-1.3b --train=lora --checkpointing=full --format=json --time_ms=9000 --device_name='NVIDIA H200'
json_valid "$OUT"
out_has '"hfu": 0\.1'
expect 0 "sparse and cached" "$TOOL" wan2.1-t2v-1.3b --steps=50 --cached_forwards=20 --attention_density=0.2
out_has '50 steps of 1 forward, 20 cached, attention density 0.2'
expect 2 "more cached than there are" "$TOOL" wan-tiny --cached_forwards=2
err_has '2 cached forwards of 1'

# Where there is a device it is measured; elsewhere the exit says so.
"$TOOL" --measure --format=json >"$OUT" 2>"$ERR" </dev/null
case $? in
  0) json_valid "$OUT" ;;
  3) err_has '^flops: ' ;;
  *) fail "--measure" ;;
esac

# Files and folders.
mkdir -p "$TMP/pipe/transformer" "$TMP/pipe/vae" "$TMP/pipe/text_encoder"
echo '{"_class_name": "WanPipeline"}' >"$TMP/pipe/model_index.json"
echo '{"_class_name": "WanTransformer3DModel", "num_attention_heads": 12, "num_layers": 30, "ffn_dim": 8960}' >"$TMP/pipe/transformer/config.json"
echo '{"_class_name": "AutoencoderKLWan"}' >"$TMP/pipe/vae/config.json"
echo '{"architectures": ["UMT5EncoderModel"], "d_model": 4096, "d_ff": 10240, "d_kv": 64, "num_heads": 64, "num_layers": 24, "feed_forward_proj": "gated-gelu"}' >"$TMP/pipe/text_encoder/config.json"
expect 0 "a pipeline" "$TOOL" "$TMP/pipe" --format=json
json_valid "$OUT"
out_has '"forward_flops": 283001787777024,'
out_has '"class": "AutoencoderKLWan"'
out_has '"class": "UMT5EncoderModel"'
mkdir "$TMP/pipe/image_encoder"
echo '{"_class_name": "SomeEncoder"}' >"$TMP/pipe/image_encoder/config.json"
expect 0 "a pipeline by its index" "$TOOL" "$TMP/pipe/model_index.json"
out_has 'note: not in these figures, for want of a cost model: image_encoder$'
expect 0 "a component" "$TOOL" "$TMP/pipe/vae" --vae=encode --vae_tile=256
out_has 'note: encode'
expect 0 "a config" "$TOOL" "$TMP/pipe/transformer/config.json"
expect_stdin 0 "a config on standard input" "$(cat "$TMP/pipe/transformer/config.json")" "$TOOL" - --format=json
out_has '"forward_flops": 283001787777024,'
mkfifo "$TMP/fifo"
cat "$TMP/pipe/transformer/config.json" >"$TMP/fifo" &
expect 0 "a config through a pipe" "$TOOL" "$TMP/fifo" --format=json
wait
out_has '"forward_flops": 283001787777024,'
echo '{"_class_name": "UNet2DConditionModel"}' >"$TMP/unet.json"
expect 2 "a class without a model" "$TOOL" "$TMP/unet.json"
err_has "no cost model for class 'UNet2DConditionModel'"
echo '{' >"$TMP/torn.json"
expect 2 "a torn config" "$TOOL" "$TMP/torn.json"
err_has 'torn.json: expected a JSON object'
# A safetensors file of one unknown tensor: 100 x 10 float32, 24 latent tokens.
header='{"some.weight":{"dtype":"F32","shape":[100,10],"data_offsets":[0,4000]}}'
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header" >"$TMP/m.safetensors"
head -c 4000 /dev/zero >>"$TMP/m.safetensors"
expect 0 "an unknown architecture" "$TOOL" "$TMP/m.safetensors" --frames=5 --height=24 --width=32
out_has 'only linear layers are priced'
out_has 'one call +48000 FLOPs'
"$TOOL" --list >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a full disk"

check_contract
finish
