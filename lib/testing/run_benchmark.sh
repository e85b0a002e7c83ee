#!/bin/bash
# run_benchmark.sh BINARY ROW...: the benchmark runs and prints each of its rows.
set -euo pipefail
binary=$1
shift
out=$("$binary" --benchmark_min_time=0.001)
for row in "$@"; do
  grep -qE "^$row(/[^ ]*)? " <<<"$out" || { echo "no row $row in: $out"; exit 1; }
done
