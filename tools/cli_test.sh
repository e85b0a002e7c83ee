# Sourced by each tools/*_cli_test.sh: assertions, and the part of the contract
# that every tool keeps. The test is called with the binary and its docs page.
#
#   source tools/cli_test.sh "$@"
#   expect 2 "missing file" "$TOOL" /no/such/file
#   check_contract
#   finish

set -u
TOOL=$PWD/$1
PAGE=$PWD/$2
NAME=$(basename "$TOOL")
TMP=${TEST_TMPDIR:-$(mktemp -d)}
OUT=$TMP/stdout
ERR=$TMP/stderr
failures=0

fail() {
  echo "FAILED: $*"
  sed 's/^/  stdout: /' "$OUT" | head -n 20
  sed 's/^/  stderr: /' "$ERR" | head -n 20
  failures=$((failures + 1))
}

# expect CODE WHAT COMMAND...: runs it, keeps its streams in $OUT and $ERR.
expect() {
  local code=$1 what=$2 rc
  shift 2
  "$@" >"$OUT" 2>"$ERR" </dev/null
  rc=$?
  [ "$rc" -eq "$code" ] || fail "$what: exit $rc, expected $code ($*)"
}

# expect_stdin CODE WHAT INPUT COMMAND...: the same, with INPUT as standard input.
expect_stdin() {
  local code=$1 what=$2 input=$3 rc
  shift 3
  printf '%s' "$input" | "$@" >"$OUT" 2>"$ERR"
  rc=${PIPESTATUS[1]}
  [ "$rc" -eq "$code" ] || fail "$what: exit $rc, expected $code ($*)"
}

out_has() { grep -qE -e "$1" "$OUT" || fail "stdout lacks: $1"; }
err_has() { grep -qE -e "$1" "$ERR" || fail "stderr lacks: $1"; }
out_is_empty() { [ ! -s "$OUT" ] || fail "stdout is not empty"; }
err_is_empty() { [ ! -s "$ERR" ] || fail "stderr is not empty"; }

# json_valid FILE: one document. jsonl_valid FILE: one document a line.
json_valid() {
  if command -v python3 >/dev/null; then
    python3 -c '
import json, sys
def refuse(token): raise ValueError(token)
json.load(open(sys.argv[1], encoding="utf-8"), parse_constant=refuse)' "$1" ||
      fail "not valid JSON: $1"
  fi
}
jsonl_valid() {
  if command -v python3 >/dev/null; then
    python3 -c '
import json, sys
def refuse(token): raise ValueError(token)
for line in open(sys.argv[1], encoding="utf-8"):
    record = json.loads(line, parse_constant=refuse)
    assert "kind" in record, line' "$1" || fail "not valid JSONL: $1"
  fi
}

# What holds for every tool: help, version, generated pages, misuse, a full disk.
check_contract() {
  expect 0 "--help" "$TOOL" --help
  err_is_empty
  out_has '^Usage: '"$NAME"' '
  out_has '^Exit status:'
  awk 'length > 100 { exit 1 }' "$OUT" || fail "--help has lines over 100 columns"
  expect 0 "-h beside a wrong flag" "$TOOL" --no-such-flag -h
  expect 0 "--version" "$TOOL" --version
  err_is_empty
  out_has '^firstframe '"$NAME"' [0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]{7,40}(-dirty)?|unknown), CUDA ([0-9.]+|none)\)$'
  expect 0 "--generate=markdown" "$TOOL" --generate=markdown
  diff -u "$PAGE" "$OUT" ||
    fail "docs/tools/$NAME.md is out of date: bazel run //tools:$NAME -- --generate=markdown >docs/tools/$NAME.md"
  expect 0 "--generate=bash" "$TOOL" --generate=bash
  bash -n "$OUT" || fail "the completion script does not parse"
  expect 0 "--generate=man" "$TOOL" --generate=man
  out_has '^\.TH '
  expect 2 "an unknown flag" "$TOOL" --no-such-flag
  out_is_empty
  err_has '^'"$NAME"': unknown flag --no-such-flag'
  err_has "try '$NAME --help'"
  expect 2 "a misspelt flag" "$TOOL" --versoin
  err_has 'did you mean --version\?'
  if [ -e /dev/full ]; then
    "$TOOL" --help >/dev/full 2>"$ERR"
    local rc=$?
    [ "$rc" -eq 2 ] || fail "--help to a full disk: exit $rc, expected 2"
    err_has 'No space left'
  fi
  # A reader that has gone ends the tool by SIGPIPE, silently.
  "$TOOL" --help 2>"$ERR" | true
  local rc=${PIPESTATUS[0]}
  [ "$rc" -eq 141 ] || [ "$rc" -eq 0 ] || fail "a closed pipe: exit $rc"
  err_is_empty
}

finish() {
  if [ "$failures" -ne 0 ]; then
    echo "$failures failed"
    exit 1
  fi
  echo passed
  exit 0
}
