#!/usr/bin/env bash
source tools/cli_test.sh "$@"

expect 2 "nothing to make" "$TOOL" --out="$TMP/v"
err_has 'expected --config, or --tensors with --bytes'
expect 2 "two things to make" "$TOOL" --config=tiny --tensors=3 --bytes=1KB --out="$TMP/v"
expect 2 "no folder" "$TOOL" --config=tiny
err_has 'expected --out=DIR'
expect 2 "an argument" "$TOOL" --config=tiny --out="$TMP/v" extra
err_has "unexpected argument 'extra'"
expect 2 "an unknown preset" "$TOOL" --config=huge --out="$TMP/v"
err_has '--config=huge: expected tiny, small, wan21'
expect 2 "no shards" "$TOOL" --config=tiny --shards=0 --out="$TMP/v"
expect 2 "an integer type" "$TOOL" --config=tiny --dtype=I8 --out="$TMP/v"
err_has 'F32'
expect 2 "tensors without bytes" "$TOOL" --tensors=3 --out="$TMP/v"
err_has '--bytes'
expect 2 "too few bytes" "$TOOL" --tensors=3 --bytes=4 --out="$TMP/v"
err_has '3 tensors in 4 bytes'
[ ! -e "$TMP/v" ] || fail "a failed run left a folder"

expect 0 "tiny" "$TOOL" --config=tiny --out="$TMP/tiny"
out_has '^.*/tiny/diffusion_pytorch_model.safetensors$'
out_has '^146 tensors, 55444 bytes$'
cmp "$TMP/tiny/diffusion_pytorch_model.safetensors" \
  testdata/wan_vae/tiny_vae/diffusion_pytorch_model.safetensors ||
  fail "tiny differs from what diffusers wrote"

expect 0 "tiny again, from its own config" "$TOOL" --config="$TMP/tiny/config.json" --out="$TMP/again"
diff -r "$TMP/tiny" "$TMP/again" || fail "a config.json makes another checkpoint"
expect_stdin 0 "a config from stdin" "$(cat "$TMP/tiny/config.json")" \
  "$TOOL" --config=- --out="$TMP/stdin"
diff -r "$TMP/tiny" "$TMP/stdin" || fail "a config from stdin makes another checkpoint"
expect 2 "a missing config" "$TOOL" --config="$TMP/absent.json" --out="$TMP/v"
err_has 'absent.json'
expect_stdin 2 "a config that is refused" '{"patch_size": 2}' "$TOOL" --config=- --out="$TMP/v"
err_has 'standard input: patch_size is 2'

expect 0 "shards" "$TOOL" --config=tiny --shards=3 --dtype=BF16 --out="$TMP/shards" --format=json
json_valid "$OUT"
out_has '"size_bytes": 27722'
[ -s "$TMP/shards/diffusion_pytorch_model-00003-of-00003.safetensors" ] || fail "no third shard"
json_valid "$TMP/shards/diffusion_pytorch_model.safetensors.index.json"
expect 0 "original names" "$TOOL" --config=tiny --names=original --out="$TMP/original"
head -c 20000 "$TMP/original/diffusion_pytorch_model.safetensors" |
  grep -qa 'decoder.upsamples.0.residual.0.gamma' || fail "no original names"

expect 0 "a size and a number" "$TOOL" --tensors=5 --bytes=1.5MB --shards=2 --out="$TMP/big"
out_has '^5 tensors, 1500000 bytes$'
[ -s "$TMP/big/model.safetensors.index.json" ] || fail "no index"
expect 2 "a folder that cannot be made" "$TOOL" --config=tiny --out=/dev/null/x
err_has '/dev/null/x'
"$TOOL" --config=tiny --out="$TMP/tiny" >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "the list of files to a full disk"

check_contract
finish
