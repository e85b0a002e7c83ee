#!/usr/bin/env bash
source tools/cli_test.sh "$@"

cat >"$TMP/a.pt.trace.json" <<'JSON'
{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
"distributedInfo": {"rank": 0}, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"fastvideo.region::decode","pid":5,"tid":5,"ts":1,"dur":50},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":2,"dur":3,"args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"my_kernel","pid":0,"tid":7,"ts":10,"dur":20,"args":{"correlation":4,"stream":7,"device":0}}
]}
JSON
A=$TMP/a.pt.trace.json

expect 2 "no file" "$TOOL"
err_has 'expected a trace FILE'
expect 2 "a missing file" "$TOOL" "$TMP/absent"
err_has 'absent: No such file'
expect 2 "two modes" "$TOOL" --diff --validate=hta "$A" "$A"
expect 0 "report" "$TOOL" "$A"
out_has 'region decode: 1 times'
out_has 'my_kernel'
err_is_empty
expect_stdin 0 "stdin" "$(cat "$A")" "$TOOL" -
out_has 'region decode'
expect_stdin 2 "stdin twice" "" "$TOOL" - -
expect_stdin 2 "no trace" "hello" "$TOOL" -
err_has 'expected a JSON or Perfetto trace'
expect_stdin 2 "an object that is no trace" '{"name": "x", "traces": []}' "$TOOL" -
err_has 'not a trace: expected an object with a list traceEvents.*found an object of name, traces'

# Pipes: read once by all that need no second reading, refused by the others.
pipe() { rm -f "$TMP/$1"; mkfifo "$TMP/$1"; (cat "$2" >"$TMP/$1" &); }
gzip -kf "$A"
pipe p1 "$A"
expect 0 "a pipe" "$TOOL" "$TMP/p1"
out_has 'region decode: 1 times'
pipe p1 "$A.gz"
expect 0 "a packed pipe" "$TOOL" "$TMP/p1" --format=json
json_valid "$OUT"
pipe p1 "$A"
pipe p2 "$A.gz"
expect 0 "--diff of two pipes" "$TOOL" --diff "$TMP/p1" "$TMP/p2"
pipe p1 "$A"
expect 1 "--validate of a pipe" "$TOOL" --validate=perfetto,hta "$TMP/p1"
out_has 'the name must end in .json or .gz'
pipe p1 "$A"
expect 0 "--repair of a pipe" "$TOOL" --repair="$TMP/piped.json" "$TMP/p1"
json_valid "$TMP/piped.json"
pipe p1 "$A"
expect 0 "--split=rank of a pipe" "$TOOL" --split=rank --stem="$TMP/piped" "$TMP/p1"
rm -f "$TMP/p1"
mkfifo "$TMP/p1"
for mode in --merge="$TMP/m.json" --split=region --split=time --since_s=1 --until_s=1; do
  expect 2 "$mode of a pipe" timeout 10 "$TOOL" "$mode" "$TMP/p1"
  err_has 'p1: expected a file, for this reads the trace twice'
done
expect 2 "--split of stdin" "$TOOL" --split=rank - </dev/null
err_has 'needs --stem'

expect 0 "--region" "$TOOL" "$A" --region='enc*'
! grep -q 'region decode' "$OUT" || fail "--region did not filter"
expect 0 "--until_s beyond the last time" "$TOOL" "$A" --until_s=1e300
out_has 'my_kernel'
expect 0 "--since_s beyond the last time" "$TOOL" "$A" --since_s=1e300
! grep -q 'my_kernel' "$OUT" || fail "--since_s=1e300 left a kernel"
expect 2 "--since_s of nan" "$TOOL" "$A" --since_s=nan
expect 2 "--window_s beyond" "$TOOL" "$A" --split=time --window_s=1e300 \
  --stem="$TMP/part"
expect 0 "json" "$TOOL" "$A" --format=json
json_valid "$OUT"
out_has '"busy_ns": 20000'
expect 2 "a report in jsonl" "$TOOL" "$A" --format=jsonl
expect 2 "--diff in jsonl" "$TOOL" --diff "$A" "$A" --format=jsonl
expect 2 "--validate in json" "$TOOL" --validate=perfetto "$A" --format=json
expect 2 "--repair in json" "$TOOL" --repair="$TMP/x.json" "$A" --format=json
expect 0 "html" "$TOOL" "$A" --format=html --output="$TMP/r.html"
grep -qi '<!doctype html>' "$TMP/r.html" || fail "no page"
expect 0 "--since_s" "$TOOL" "$A" --since_s=0.000005
out_has 'GPU 0: 1 events'

expect 0 "--diff with itself" "$TOOL" --diff "$A" "$A"
sed 's/my_kernel/other_kernel/' "$A" >"$TMP/b.json"
expect 1 "--diff" "$TOOL" --diff "$A" "$TMP/b.json" --format=json
json_valid "$OUT"
out_has 'only_in_b'
expect 2 "--diff of one" "$TOOL" --diff "$A"

expect 0 "--validate" "$TOOL" --validate=perfetto,hta,tensorboard "$A"
head -c 300 "$A" >"$TMP/cut.json"
expect 1 "--validate of a cut file" "$TOOL" --validate=perfetto "$TMP/cut.json" --format=jsonl
jsonl_valid "$OUT"
out_has '"rule":"truncated"'
expect 2 "--validate for nobody" "$TOOL" --validate=perfeto "$A"
err_has 'did you mean perfetto'

expect 0 "--repair" "$TOOL" --repair="$TMP/fixed.json" "$TMP/cut.json"
json_valid "$TMP/fixed.json"
expect 0 "--redact" "$TOOL" --redact="$TMP/redacted.json" "$A"
json_valid "$TMP/redacted.json"
expect 0 "--merge" "$TOOL" --merge="$TMP/merged.json" "$A" "$TMP/b.json"
json_valid "$TMP/merged.json"
expect 0 "--split=rank" "$TOOL" --split=rank --stem="$TMP/part" "$TMP/merged.json"
out_has 'part.rank1.json.gz: '
expect 0 "--split=region" "$TOOL" --split=region --stem="$TMP/part" "$A"
[ -s "$TMP/part.decode.json.gz" ] || fail "no part for the region"
expect 0 "--split=time" "$TOOL" --split=time --window_s=0.00001 --stem="$TMP/part" "$A"
expect 2 "--split by nothing known" "$TOOL" --split=colour "$A"
expect 2 "--repair into a missing folder" "$TOOL" --repair="$TMP/no/x.json" "$A"
"$TOOL" "$A" >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a full disk"

check_contract
finish
