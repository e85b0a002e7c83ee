#!/usr/bin/env bash
source tools/cli_test.sh "$@"
WRITE_CASES=$PWD/$3

expect 2 "no path" "$TOOL"
err_has 'expected a PATH'
expect 2 "standard input" "$TOOL" -
err_has 'standard input has no size'
expect 2 "a wrong hash" "$TOOL" --hash=md5 x
err_has 'sha256'
expect 2 "a missing file" "$TOOL" "$TMP/none.safetensors"
err_has 'none.safetensors: found nothing, expected a checkpoint'

# Every kind of file, with the verdict that the table in docs/formats gives it.
mkdir -p "$TMP/cases"
"$WRITE_CASES" "$TMP/cases" || fail "cannot write the cases"
kinds=0
while IFS=$'\t' read -r name _reference verdict rule; do
  kinds=$((kinds + 1))
  file=$TMP/cases/$name.safetensors
  case $verdict in
    accept) strict=0 lenient=0 ;;
    lenient) strict=1 lenient=0 ;;
    refuse) strict=1 lenient=1 ;;
  esac
  expect $strict "$name" "$TOOL" --format=jsonl "$file"
  err_is_empty
  [ "$rule" = - ] || grep -q "\"rule\":\"$rule\"" "$OUT" || fail "$name: no $rule"
  expect $lenient "$name, lenient" "$TOOL" --lenient "$file"
done <"$TMP/cases/cases.tsv"
[ $kinds -ge 125 ] || fail "only $kinds kinds of file"

expect 1 "all of them at once" "$TOOL" --format=jsonl "$TMP"/cases/*.safetensors
jsonl_valid "$OUT"
[ "$(grep -c '"kind":"file"' "$OUT")" -eq $kinds ] || fail "a file has no record"
expect 1 "a truncated file as text" "$TOOL" "$TMP/cases/data_short_by_1.safetensors"
out_has 'error: .*: byte 65: tensor "a": found the end of the file, 65 of 66 bytes, expected 1 bytes more \[truncated_file\]'
out_has '^1 file, 1 invalid: 1 error, 0 warnings$'
expect 1 "a name that comes twice" "$TOOL" "$TMP/cases/name_twice_escaped.safetensors"
out_has 'byte 62: tensor "a": found the name a second time, expected one entry, which is at byte 9'

good=$TMP/cases/plain.safetensors
expect 2 "one bad path of two" "$TOOL" "$TMP/none" "$good"
out_has '^1 file, 0 invalid'
err_has 'none: found nothing'
expect 0 "--hash=sha256" "$TOOL" --hash=sha256 "$good"
if command -v sha256sum >/dev/null; then
  out_has "^$(sha256sum <"$good" | cut -d' ' -f1)  "
fi
expect 0 "--hash=xxh3" "$TOOL" --hash=xxh3 "$good" --format=jsonl
jsonl_valid "$OUT"
out_has '"xxh3":"[0-9a-f]{16}"'
expect 0 "--summary" "$TOOL" --summary "$good"
out_has '^F32 +1 +1 +4 B$'
expect 0 "--summary as JSONL" "$TOOL" --summary --format=jsonl "$good"
jsonl_valid "$OUT"
out_has '"kind":"summary","tensors":1,"parameters":1,"size_bytes":4'

# Folders and indexes.
mkdir -p "$TMP/model"
cp "$good" "$TMP/model/m-1.safetensors"
echo '{"metadata":{"total_size":4},"weight_map":{"a":"m-1.safetensors"}}' \
  >"$TMP/model/model.safetensors.index.json"
expect 0 "an index" "$TOOL" "$TMP/model"
out_has '^1 file and 1 index, 0 invalid'
echo '{"metadata":{"total_size":4},"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}' \
  >"$TMP/model/model.safetensors.index.json"
expect 1 "an absent shard" "$TOOL" "$TMP/model"
out_has 'found nothing, expected the shard "m-2.safetensors" with 1 tensors \[missing_shard\]'
mkdir -p "$TMP/empty"
expect 2 "a folder without checkpoints" "$TOOL" "$TMP/empty"
err_has 'expected \*\.safetensors or an index'
mkfifo "$TMP/pipe.safetensors"
expect 2 "a pipe" "$TOOL" "$TMP/pipe.safetensors"
err_has 'found a pipe, expected a file'

# Differences.
expect 0 "--diff of equals" "$TOOL" --diff "$good" "$good"
out_has '^1 tensors in both, 1 equal, 0 different; 0 only in A, 0 only in B$'
sed 's/....$/zzzz/' "$good" >"$TMP/changed.safetensors"
expect 1 "--diff" "$TOOL" --diff "$good" "$TMP/changed.safetensors"
out_has '^"a": values differ: 1 of 1 elements differ'
expect 1 "--diff as JSONL" "$TOOL" --diff --format=jsonl "$good" "$TMP/changed.safetensors"
jsonl_valid "$OUT"
expect 1 "--diff of other names" "$TOOL" --diff "$good" "$TMP/cases/name_empty.safetensors"
out_has '"a": only in A, F32 \[1\]'
expect 2 "--diff with a malformed file" "$TOOL" --diff "$good" "$TMP/cases/hole_between.safetensors"
err_has 'found data from 8 to 12'
expect 2 "--diff with one path" "$TOOL" --diff "$good"
err_has 'found 1 paths, expected A and B'
expect 2 "--diff with --summary" "$TOOL" --diff --summary "$good" "$good"

"$TOOL" "$good" >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a result to a full disk"
expect 0 "--output" "$TOOL" --output="$TMP/out.txt" "$good"
grep -q '^1 file, 0 invalid' "$TMP/out.txt" || fail "--output"

check_contract
finish
