#!/bin/bash
# Runs trace_diff_speed.py for a moment.
set -euo pipefail
command -v python3 >/dev/null || exit 0
command -v taskset >/dev/null || exit 0
python3 "$1" "$PWD/$2" --records=2000 --rounds=1 --core=0 | tee "${TEST_TMPDIR:-/tmp}/out"
grep -q '"kind": "ratio"' "${TEST_TMPDIR:-/tmp}/out"
