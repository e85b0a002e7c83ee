#!/bin/bash
source tools/cli_test.sh "$@"
GOLDEN=testdata/wan_vae/small_golden.safetensors

check_contract

expect 0 "a checkpoint" "$TOOL" $GOLDEN
err_is_empty
out_has '^\{"module": "latent", "tensor": "out", "step": null, "abs_mean": [0-9.]+, .*"shape": \[2, 16, 3, [0-9]+, [0-9]+\], "dtype": "torch\.float32", "numel": [0-9]+, .*"sk": "[A-Za-z0-9+/=]{344}"\}$'
cp "$OUT" "$TMP/one.jsonl"
expect 0 "on one thread" "$TOOL" --threads=1 $GOLDEN
cmp -s "$OUT" "$TMP/one.jsonl" || fail "the number of threads changes the records"
expect 0 "to a file" "$TOOL" --output="$TMP/file.jsonl" $GOLDEN
cmp -s "$TMP/file.jsonl" "$TMP/one.jsonl" || fail "--output differs from stdout"
expect 0 "keys" "$TOOL" --layers='^lat' --stats=sum,shape --step=3 --run=r --rank=1 --header $GOLDEN
out_has '^\{"trace_header": \{"version": 1,'
out_has '^\{"module": "latent", "tensor": "out", "step": 3, "rank": 1, "run": "r", "sum": [-0-9.]+, "shape": \[2, 16, 3, [0-9]+, [0-9]+\]\}$'
[ "$(wc -l <"$OUT")" -eq 2 ] || fail "--layers let others through"
expect 1 "layers that match nothing" "$TOOL" --layers=nothing $GOLDEN
err_has "there is '[a-z_]+'"
expect 0 "a glob" "$TOOL" --stats=sum 'testdata/wan_vae/tin*_golden.safetensors'

# The statistics are what the definition in plain Python says.
if command -v python3 >/dev/null; then
  TINY=testdata/wan_vae/tiny_golden.safetensors
  python3 lib/stats/reference.py $TINY >"$TMP/reference.jsonl"
  expect 0 "the definition's statistics" "$TOOL" --stats=h_set,h_pos,amax_idx,exp_hist,samp,sk $TINY
  python3 - "$TMP/reference.jsonl" "$OUT" <<'PYTHON' || fail "differs from lib/stats/reference.py"
import base64, json, struct, sys
reference = [json.loads(line) for line in open(sys.argv[1])]
ours = {record["module"]: record for record in map(json.loads, open(sys.argv[2]))}
assert len(reference) == 5
for record in reference:
    other = ours[record["module"]]
    for key in ("h_set", "h_pos", "amax_idx", "exp_hist", "samp"):
        assert record[key] == other[key], (record["module"], key)
    a, b = (struct.unpack("<64f", base64.b64decode(r["sk"])) for r in (record, other))
    norm = sum(x * x for x in a) ** 0.5
    assert all(abs(x - y) <= 3e-6 * norm for x, y in zip(a, b)), record["module"]
PYTHON
fi

# One .npy in the format's version 1.0: [2, 3] of float32.
{
  printf '\x93NUMPY\x01\x00\x76\x00'
  printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
  printf '\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\xc0\x00\x00\xc0\x7f\x00\x00\x00\x00'
} >"$TMP/block.0.npy"
expect 0 "an array" "$TOOL" --stats=sum,max,nan,zero,shape "$TMP/block.0.npy"
out_has '^\{"module": "block\.0", "tensor": "out", "step": null, "sum": NaN, "max": NaN, "nan": 1, "zero": 1, "shape": \[2, 3\]\}$'
mkdir "$TMP/folder" && cp "$TMP/block.0.npy" "$TMP/folder/b.npy" && cp "$TMP/block.0.npy" "$TMP/folder/a.npy"
expect 0 "a folder" "$TOOL" --stats=nan "$TMP/folder"
[ "$(sed 's/.*"module": "\([^"]*\)".*/\1/' "$OUT" | tr '\n' ' ')" = "a b " ] || fail "a folder is not sorted"

# Other tools' dumps.
MSPROBE='{"data": {"Module.a.b.Linear.forward.0": {"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 2.0}]}}}'
expect_stdin 0 "msprobe" "$MSPROBE" "$TOOL" --from=msprobe -
out_has '^\{"module": "a\.b", "tensor": "out\[0\]", "step": null, "min": 0\.0, "max": 1\.0, "mean": 0\.5, "rms": 1\.0, "shape": \[4\], "dtype": "torch\.float32"\}$'
expect_stdin 2 "a torn msprobe dump" "${MSPROBE:0:100}" "$TOOL" --from=msprobe -
err_has 'msprobe dump: byte [0-9]+'
expect_stdin 1 "no such layer" "$MSPROBE" "$TOOL" --from=msprobe --layers=zzz -

FOREIGN=testdata/activation_trace/foreign
for case in torchtitan:torchtitan.log te-log:transformer_engine.log msprobe:msprobe.json msprobe:msprobe_md5.json sglang:sglang.jsonl; do
  expect 0 "a dump: $case" "$TOOL" --from="${case%%:*}" "$FOREIGN/${case#*:}"
done
expect 0 "one dump's layer" "$TOOL" --from=torchtitan --layers='layers\.5\.w2' $FOREIGN/torchtitan.log
out_has '^\{"module": "layers\.5\.w2\.mm", "tensor": "out", "step": null, "abs_mean": [0-9.]+, "rms": [0-9.]+, "min": -[0-9.]+, "max": [0-9.]+, "mean": -?[0-9.e-]+, "shape": \[256, 64\], "dtype": "torch\.float32", "stat_rel": 5e-07\}$'

# Misuse and trouble.
expect 2 "no path" "$TOOL"
err_has 'expected at least one PATH'
expect 2 "'-' without --from" "$TOOL" -
expect 2 "a missing file" "$TOOL" /no/such/file.npy
err_has '/no/such/file\.npy: no such file'
expect 2 "an unknown statistic" "$TOOL" --stats=sum,abs_maen $GOLDEN
err_has "did you mean 'abs_mean'"
expect 2 "a wrong dialect" "$TOOL" --from=csv $GOLDEN
expect 2 "a wrong pattern" "$TOOL" --layers='(' $GOLDEN
echo x >"$TMP/x.txt"
expect 2 "another kind of file" "$TOOL" "$TMP/x.txt"
err_has 'expected \.safetensors, \.npy, \.npz'
expect 2 "one bad file of two" "$TOOL" --stats=sum "$TMP/x.txt" "$TMP/block.0.npy"
out_has '"module": "block\.0"'
if [ -e /dev/full ]; then
  "$TOOL" $GOLDEN >/dev/full 2>"$ERR"
  [ $? -eq 2 ] || fail "a full disk is not 2"
fi

finish
