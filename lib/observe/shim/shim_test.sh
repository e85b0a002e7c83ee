#!/bin/bash
# The preloaded library needs libc.so.6 alone and exports only what it replaces.
set -euo pipefail
needed=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[ "$needed" = libc.so.6 ] || { echo "needs: $needed"; exit 1; }
exported=$(nm -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ {print $3}' | sort | tr '\n' ' ')
expected='InitializeInjectionNvtx2 __libc_start_main _exit dlopen dlsym exit fopen fopen64 mmap mmap64 open open64 openat openat64 pread pread64 read readv '
[ "$exported" = "$expected" ] || { echo "exports: $exported"; exit 1; }
