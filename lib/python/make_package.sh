#!/bin/bash
# usage: make_package.sh FOLDER FILE...   Makes FOLDER/firstframe: the Python
# sources, libfirstframe.so without symbols it does not need, and the shared
# libraries it uses that a machine may lack.
set -euo pipefail
folder=$1
shift
to=$folder/firstframe
mkdir -p "$to"
for file in "$@"; do
  cp -Lf "$file" "$to/"
  chmod u+w "$to/$(basename "$file")"
done
strip --strip-unneeded "$to/libfirstframe.so"
# Beside the C and C++ runtimes, which are the machine's or the program's own.
ldd "$to/libfirstframe.so" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' |
  while read -r name path; do
    case $name in
      libc.so.* | libm.so.* | libstdc++.so.* | libgcc_s.so.* | libpthread.so.* | libdl.so.* | librt.so.*) ;;
      *) cp -Lf "$path" "$to/$name" && chmod u+w "$to/$name" ;;
    esac
  done
