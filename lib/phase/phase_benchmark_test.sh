#!/bin/bash
# The benchmark runs and prints each of its rows.
set -euo pipefail
out=$("$1" --benchmark_min_time=0.001)
for row in BM_Disabled BM_DisabledRunPhase BM_TwoClockReadings BM_Enabled; do
  grep -q "^$row " <<<"$out" || { echo "no row $row in: $out"; exit 1; }
done
