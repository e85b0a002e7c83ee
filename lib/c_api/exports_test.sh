#!/bin/bash
# usage: exports_test.sh LIBRARY HEADER   What the one exports is what the other
# declares.
set -euo pipefail
declared=$(tr '\n' ' ' <"$2" | grep -oE 'FF_API[^;]*' | grep -oE 'ff_[a-z0-9_]+ *\(' | tr -d ' (' | sort)
exported=$(nm -D --extern-only --defined-only "$1" | awk '{ print $3 }' | sort)
[ -n "$declared" ]
diff <(echo "$declared") <(echo "$exported") || {
  echo "< declared alone, > exported alone" >&2
  exit 1
}
