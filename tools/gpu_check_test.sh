#!/usr/bin/env bash
# gpu_check.sh without a GPU: what it refuses, and that a packed folder says what is missing.
set -u
CHECK=$1
T=$TEST_TMPDIR
fail() { echo "FAILED: $*" >&2; exit 1; }

"$CHECK" --help >"$T/out" || fail "--help: exit $?"
grep -q -- '--pack=FOLDER' "$T/out" || fail "--help does not name --pack"
"$CHECK" --nonsense >"$T/out" 2>"$T/err"
[ $? -eq 2 ] || fail "an unknown flag: not exit 2"
grep -q 'unknown flag --nonsense' "$T/err" || fail "an unknown flag: no message"

# A packed folder whose nvidia-smi finds nothing, then one that finds a GPU.
mkdir -p "$T/packed/bin" "$T/path" "$T/logs"
cp "$CHECK" "$T/packed/gpu_check.sh"
printf '#!/bin/sh\necho "[       OK ] A.b (1 ms)"\n' >"$T/packed/bin/good_test"
printf '#!/bin/sh\necho "[  FAILED  ] A.b (1 ms)"; exit 1\n' >"$T/packed/bin/bad_test"
printf '#!/bin/sh\necho "args: $*"\n' >"$T/packed/bin/some_benchmark"
printf '#!/bin/sh\nexit 9\n' >"$T/path/nvidia-smi"
chmod +x "$T"/packed/bin/* "$T/path/nvidia-smi"
printf 'test good_test\ntest bad_test\nbenchmark some_benchmark --x=1\n' >"$T/packed/list"
export PATH=$T/path:$PATH
"$T/packed/gpu_check.sh" --out="$T/logs" >"$T/out" 2>"$T/err"
[ $? -eq 3 ] || fail "no GPU: not exit 3"
grep -q 'no GPU here' "$T/err" || fail "no GPU: no message"

printf '#!/bin/sh\necho "GPU 0: a fake"\n' >"$T/path/nvidia-smi"
"$T/packed/gpu_check.sh" --out="$T/logs" >"$T/out" 2>&1
[ $? -eq 1 ] || fail "a failing test: not exit 1"
grep -q 'good_test .*exit 0  1 passed, 0 skipped, 0 failed' "$T/out" || fail "good_test: $(cat "$T/out")"
grep -q 'bad_test .*exit 1  0 passed, 0 skipped, 1 failed' "$T/out" || fail "bad_test: $(cat "$T/out")"
grep -q 'args: --x=1' "$T/out" || fail "the benchmark's arguments: $(cat "$T/out")"
"$T/packed/gpu_check.sh" --out="$T/logs" --only=good >"$T/out" 2>&1 || fail "--only: exit $?"
if grep -q bad_test "$T/out"; then fail "--only ran bad_test"; fi
exit 0
