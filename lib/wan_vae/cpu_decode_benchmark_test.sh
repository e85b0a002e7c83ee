#!/usr/bin/env bash
"$1" --benchmark_filter='BM_Decode/0/3/2/2' --benchmark_min_time=0.01
