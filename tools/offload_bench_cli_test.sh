#!/usr/bin/env bash
source tools/cli_test.sh "$@"

expect 2 "no module" "$TOOL"
err_has 'expected one of --model_path and --bytes'
expect 2 "two modules" "$TOOL" --bytes=1000 --model_path=x
expect 2 "an argument" "$TOOL" --bytes=1000 x
err_has "unexpected argument 'x'"
expect 2 "no bytes" "$TOOL" --bytes=0
err_has 'bytes: found 0'
expect 2 "a size that is none" "$TOOL" --bytes=4GOB
err_has '\-\-bytes: '
expect 2 "a budget that is none" "$TOOL" --bytes=1MiB --pin_budget=-5
err_has '\-\-pin_budget: '
expect 2 "an unknown strategy" "$TOOL" --bytes=1000 --strategy=frozen,swap
err_has "found 'swap', expected frozen, roundtrip, mapped or layerwise"
expect 2 "no strategy" "$TOOL" --bytes=1000 --strategy=
expect 2 "no cycles" "$TOOL" --bytes=1000 --cycles=0
err_has 'cycles: found 0'
expect 2 "an unknown device" "$TOOL" --bytes=1000 --device=tpu
expect 2 "a missing checkpoint" "$TOOL" --device=cpu --model_path="$TMP/none"
err_has 'none: found nothing, expected a checkpoint'

# Without a device every way is the identity.
expect 0 "the identity" "$TOOL" --bytes=100000 --device=cpu --cycles=2
out_has '^[0-9]+ tensors, 0\.000 GB, synthetic, no device: nothing is moved$'
out_has 'verified: yes'
err_has 'no device: every strategy is the identity'
expect 0 "as JSON" "$TOOL" --bytes=100000 --device=cpu --cycles=2 --format=json
json_valid "$OUT"
out_has '"name": "firstframe.offload_bench"'
expect 0 "strategies that need a device" \
  "$TOOL" --bytes=100000 --device=cpu --strategy=layerwise,mapped --quiet
out_has '^layerwise: host 0\.000 GB pinned'
out_has '^mapped: skipped: it needs a checkpoint'
err_is_empty
expect 0 "--output" "$TOOL" --bytes=1000 --device=cpu --quiet --output="$TMP/o.txt"
grep -q 'frozen' "$TMP/o.txt" || fail "--output"
"$TOOL" --bytes=1000 --device=cpu >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "a result to a full disk"
# Where there is a GPU this measures; elsewhere it says what is missing.
"$TOOL" --bytes=1000 --device=cuda --cycles=1 >"$OUT" 2>"$ERR"
case $? in
  0) out_has '^limit: ' ;;
  3) err_has '^offload_bench: ' ;;
  *) fail "--device=cuda" ;;
esac

check_contract
finish
