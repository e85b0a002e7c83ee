#!/bin/bash
# The MPI transport on four CPU ranks; skipped where there is no mpirun.
set -u
check=$1
if ! command -v mpirun > /dev/null; then
  echo "SKIPPED: no mpirun (package openmpi-bin)"
  exit 0
fi
export HOME=${TEST_TMPDIR:-/tmp} OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMPI_MCA_mpi_yield_when_idle=1
run() { timeout 120 mpirun -n 4 --allow-run-as-root --oversubscribe "$check" "$@" 2>&1; }
failures=0
expect() {  # NAME OUTPUT PATTERN COUNT
  local found
  found=$(grep -cE "$3" <<< "$2")
  if [[ $found -lt $4 ]]; then
    echo "FAILED: $1: expected $4 lines like '$3', found $found in:"
    echo "$2"
    failures=$((failures + 1))
  fi
}

out=$(run all); rc=$?
[[ $rc -eq 0 ]] || { echo "FAILED: all: exit $rc"; failures=$((failures + 1)); }
expect all "$out" 'rank [0-3] of 4: OK' 4

out=$(run fail 2); rc=$?
[[ $rc -ne 0 ]] || { echo "FAILED: fail: exit 0"; failures=$((failures + 1)); }
expect fail "$out" 'rank [013] of 4: ABORTED: rank 2 failed: bad shard' 1

out=$(run stuck 1); rc=$?
[[ $rc -ne 0 ]] || { echo "FAILED: stuck: exit 0"; failures=$((failures + 1)); }
expect stuck "$out" 'waited 1s' 1

# Without mpirun the same binary is a group of one.
out=$("$check" all 2>&1); rc=$?
[[ $rc -eq 0 ]] || { echo "FAILED: alone: exit $rc: $out"; failures=$((failures + 1)); }
exit $((failures > 0))
