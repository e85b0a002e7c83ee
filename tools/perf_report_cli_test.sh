#!/usr/bin/env bash
source tools/cli_test.sh "$@"
GOLDEN=testdata/perf

expect 2 "no file" "$TOOL"
err_has 'expected at least one FILE'
expect 2 "a ratio that is no number" "$TOOL" --straggler=nan "$TMP/absent.jsonl"
err_has 'expected a ratio above 0'
expect 2 "a missing file" "$TOOL" "$TMP/absent.jsonl"
err_has 'absent.jsonl: '
yes junk | head -n 1000 >"$TMP/junk"
expect 2 "a file of something else" "$TOOL" "$TMP/junk"
err_has 'further such lines are not named'
[ "$(wc -l <"$ERR")" -lt 30 ] || fail "a message for every line"
: >"$TMP/empty"
expect 2 "an empty file" "$TOOL" "$TMP/empty"
err_has 'no request and no training window'

# A replay of the original's records writes the original's lines. What records
# do not hold cannot be replayed: steps(ms) and "metrics enabled", and in the
# training summary the percentiles over single steps. These windows allow a p95
# of 0.143 to 0.150 s (lib/metrics/window_steps_test.cc has two runs with these
# records that print 0.14 and 0.15), so it is an estimate and marked "~".
expect 0 "a replay of requests" "$TOOL" --format=log $GOLDEN/infer.jsonl
grep -v 'steps(ms)' $GOLDEN/infer.log | diff - "$OUT" || fail "infer.log differs"
for run in train_full train_lora_ckpt; do
  expect 0 "a replay of $run" "$TOOL" --format=log $GOLDEN/$run.jsonl
  grep ' step ' $GOLDEN/$run.log >"$TMP/expected"
  grep ' step ' "$OUT" | diff "$TMP/expected" - || fail "$run.log differs"
  out_has '=== 20 steps \| p50 ~0\.1[35]s/step p95 ~0\.1[4-6]s \| 0\.00h in-loop ===$'
done

expect 0 "text" "$TOOL" $GOLDEN/infer.jsonl $GOLDEN/train_full.jsonl
out_has 'requests +7 measured, 1 warm-up excluded'
out_has '^  transformer +40 '
out_has 'training +20 steps in 3 windows, 3 warm-up excluded'
expect 0 "a quoted pattern" "$TOOL" "$GOLDEN/train_*.jsonl"
out_has '^2 files, 6 lines'
expect 0 "JSON" "$TOOL" --format=json $GOLDEN/infer.jsonl
json_valid "$OUT"
out_has '"requests_per_hour": 14127\.'
expect 0 "CSV" "$TOOL" --format=csv $GOLDEN/infer.jsonl $GOLDEN/train_full.jsonl
[ "$(wc -l <"$OUT")" -eq 12 ] || fail "CSV: expected a header and 11 rows"

# Torn, malformed and foreign lines; Python's tokens; a byte order mark, CR LF.
{ printf '\xEF\xBB\xBF'; sed 's/$/\r/' $GOLDEN/infer.jsonl; } >"$TMP/dos.jsonl"
printf '{"kind": "loss", "value": NaN}\r\n{"kind": "requ' >>"$TMP/dos.jsonl"
expect 0 "a torn last line" "$TOOL" "$TMP/dos.jsonl"
err_has 'dos.jsonl:10: the last line is half written'
out_has '9 lines, 1 of other kinds left out, 1 half-written'
{ echo '{"kind": "request", "e2e_s": }'; cat $GOLDEN/infer.jsonl; } >"$TMP/bad.jsonl"
expect 2 "a malformed line" "$TOOL" "$TMP/bad.jsonl"
err_has 'bad.jsonl:1: byte 29: expected a number'
out_has 'requests +7 measured'
expect 2 "one bad file of two" "$TOOL" "$TMP/absent" $GOLDEN/infer.jsonl
out_has 'requests +7 measured'
expect_stdin 0 "standard input" "$(cat $GOLDEN/infer.jsonl)" "$TOOL" -
out_has 'requests +7 measured'
expect 2 "standard input twice" "$TOOL" - -

# Comparison.
expect 0 "a file with itself" "$TOOL" --diff $GOLDEN/infer.jsonl $GOLDEN/infer.jsonl
out_has '^e2e_s .* \+0\.0%'
sed -E 's/"e2e_s": 0\./"e2e_s": 1./' $GOLDEN/infer.jsonl >"$TMP/slow.jsonl"
expect 1 "a regression" "$TOOL" --diff $GOLDEN/infer.jsonl "$TMP/slow.jsonl"
out_has '^e2e_s .*REGRESSION'
expect 0 "an improvement" "$TOOL" --diff "$TMP/slow.jsonl" $GOLDEN/infer.jsonl
out_has '^e2e_s .*improvement'
expect 1 "a regression as JSON" "$TOOL" --diff --format=json $GOLDEN/infer.jsonl "$TMP/slow.jsonl"
json_valid "$OUT"
expect 0 "over the threshold" "$TOOL" --diff --threshold=50 $GOLDEN/infer.jsonl "$TMP/slow.jsonl"
expect 2 "--diff of one file" "$TOOL" --diff $GOLDEN/infer.jsonl
expect 2 "nothing in common" "$TOOL" --diff $GOLDEN/infer.jsonl $GOLDEN/train_full.jsonl

# Live: a record that is completed while it is watched.
head -n 2 $GOLDEN/infer.jsonl | head -c 1500 >"$TMP/live.jsonl"
(sleep 0.6; head -n 2 $GOLDEN/infer.jsonl | tail -c +1501 >>"$TMP/live.jsonl") &
expect 0 "--follow" "$TOOL" --follow --refresh_s=0.1 --follow_s=2 "$TMP/live.jsonl"
wait
out_has 'req#0 warmup'
out_has 'req#1 '
err_is_empty

expect 0 "--prometheus and --html" "$TOOL" --prometheus="$TMP/perf.prom" --html="$TMP/perf.html" $GOLDEN/infer.jsonl $GOLDEN/train_full.jsonl
grep -q '^videox_perf_requests_total 7$' "$TMP/perf.prom" || fail "no metric"
lib/testing/check_html_page "$TMP/perf.html" 'VIDEOX_PERF report' 'transformer' 'Training windows' || fail "the page"
"$TOOL" $GOLDEN/infer.jsonl >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a full disk"

check_contract
finish
