#!/usr/bin/env bash
# startup_run: the contract; programs with and without CUDA and Python; what it must
# leave as it is.
source tools/cli_test.sh "$@"

PROGRAM=$PWD/lib/observe/testprogram/program
DRIVER=$PWD/lib/observe/testprogram/libfake_cuda.so
PAGE_CHECK=$PWD/lib/testing/check_html_page
head -c 80000 /dev/zero >"$TMP/model.safetensors"
RUN=("$TOOL" --scratch="$TMP")

check_contract
expect 2 "no command" "$TOOL"
err_has 'expected -- COMMAND'
expect 2 "no runs" "$TOOL" --runs=0 -- true
expect 2 "a command that is not there" "${RUN[@]}" -- /no/such/command
err_has '/no/such/command: No such file'
expect 2 "a scratch folder that is not there" "$TOOL" --scratch=/no/such -- true
expect 2 "a full disk" "${RUN[@]}" --output=/dev/full -- true

# The program's streams and exit code are its own.
expect 0 "a program" "${RUN[@]}" -- sh -c 'echo result; echo message >&2'
[ "$(cat "$OUT")" = result ] || fail "standard output is not the program's"
err_has '^message$'
err_has '^total [0-9.]+ ms, of which phases name [0-9.]+ ms \(100\.0%\)'
expect 7 "its exit code" "${RUN[@]}" -- sh -c 'exit 7'
err_has 'run 1: the program ended with code 7'
expect 143 "its signal" "${RUN[@]}" -- sh -c 'kill -TERM $$'
expect_stdin 0 "its input" "hello" "${RUN[@]}" -- cat
[ "$(cat "$OUT")" = hello ] || fail "standard input did not reach the program"
"${RUN[@]}" --output="$TMP/interrupted.json" --format=json -- sh -c 'trap "exit 5" TERM; echo up; sleep 20 & wait' >"$OUT" 2>"$ERR" &
pid=$!
for _ in $(seq 100); do grep -q up "$OUT" && break; sleep 0.05; done
kill -TERM $pid
wait $pid
[ $? -eq 5 ] || fail "a signal was not passed on"
json_valid "$TMP/interrupted.json"

# CUDA, checkpoints, regions, a thread and a child, and every kind of report.
expect 17 "a program with CUDA" "${RUN[@]}" --min_ms=0 --min_share=0 --output="$TMP/a.txt" --html="$TMP/a.html" \
  --trace_out="$TMP/a.pftrace" -- "$PROGRAM" "$DRIVER" "$TMP/model.safetensors" 17
out_is_empty
for text in 'process\.dynamic_loading' 'load libfake_cuda\.so' 'cuda\.init' 'cuda\.context' 'cuda\.first_kernel' \
  'region warmup' 'first copy to the device' 'copies back|copies device to host' 'model\.safetensors'; do
  grep -qE "$text" "$TMP/a.txt" || fail "the report lacks $text"
done
[ -s "$TMP/a.pftrace" ] || fail "no trace"
"$PAGE_CHECK" "$TMP/a.html" cuda.first_kernel "region warmup" libfake_cuda.so >"$OUT" 2>"$ERR" || fail "the page"
for side in left right; do
  expect 0 "--runs" "${RUN[@]}" --runs=3 --format=json --output="$TMP/$side.json" -- \
    "$PROGRAM" "$DRIVER" "$TMP/model.safetensors" 0
  json_valid "$TMP/$side.json"
  grep -q '"runs": 3' "$TMP/$side.json" || fail "not three runs"
done
expect 0 "--diff" "$TOOL" --diff "$TMP/left.json" "$TMP/right.json"
out_has '^process\.exec '
out_has 'medians of 3 and 3 runs'
expect 0 "--diff as JSON" "$TOOL" --diff --format=json "$TMP/left.json" "$TMP/right.json"
json_valid "$OUT"
expect 2 "--diff of one" "$TOOL" --diff "$TMP/left.json"
expect 2 "--diff of no report" "$TOOL" --diff "$TMP/left.json" "$TMP/model.safetensors"
err_has 'model\.safetensors: not a JSON object'
expect 0 "several runs as text" "${RUN[@]}" --runs=2 -- true
err_has 'run 2 of 2'
err_has '^over 2 runs'

expect 0 "--cache=cold" "${RUN[@]}" --cache=cold -- "$PROGRAM" "$DRIVER" "$TMP/model.safetensors" 0
err_has '^evicted before: [0-9]+ files, [0-9.]+ MB; '
expect 2 "--cache=hot" "${RUN[@]}" --cache=hot -- true

# Python: imports with what they import; everything else as without us.
if command -v python3 >/dev/null; then
  mkdir -p "$TMP/lib/slow" "$TMP/site"
  echo 'import time, slow.inner; time.sleep(0.02)' >"$TMP/lib/slow/__init__.py"
  echo 'import time; time.sleep(0.03)' >"$TMP/lib/slow/inner.py"
  echo 'import builtins; builtins.site_was_here = True' >"$TMP/site/sitecustomize.py"
  cat >"$TMP/check.py" <<'P'
import os, subprocess, sys, threading, traceback
assert site_was_here
assert not any("/firstframe." in entry for entry in sys.path), sys.path
import slow
try:
    import slow.nothing
except ModuleNotFoundError:
    assert len(traceback.extract_tb(sys.exc_info()[2])) == 1, traceback.format_exc()
else:
    raise AssertionError("imported what is not there")
thread = threading.Thread(target=lambda: __import__("colorsys"))
thread.start(); thread.join()
if os.fork() == 0:
    import this_is_not_there_either
os.wait()
subprocess.run([sys.executable, "-c", "import slow"], check=True)
os._exit(int(sys.argv[1]))
P
  PYTHONPATH=$TMP/site:$TMP/lib expect 4 "Python" "${RUN[@]}" --format=json --output="$TMP/py.json" -- \
    python3 "$TMP/check.py" 4
  json_valid "$TMP/py.json"
  python3 - "$TMP/py.json" >"$OUT" 2>"$ERR" <<'P' || fail "the Python report"
import json, sys
sample = json.load(open(sys.argv[1]))["samples"][0]
phases = {p["id"]: p for p in sample["phases"]}
names = [p["name"] for p in phases.values()]
assert names.count("import slow") == 2, names  # the program and its child
inner = next(p for p in phases.values() if p["name"] == "import slow.inner")
outer = phases[inner["parent_id"]]
assert outer["name"] == "import slow" and phases[outer["parent_id"]]["name"] == "program"
assert inner["duration_ns"] >= 30e6 and outer["duration_ns"] >= 50e6
roots = [p for p in phases.values() if p["parent_id"] is None and p["lane"] == 0]
assert [p["name"] for p in roots] == ["process.exec", "process.dynamic_loading", "python.start", "program", "process.exit"]
assert sum(p["duration_ns"] for p in roots) == sample["recording_duration_ns"] == sample["facts"]["wall_ns"]
packages = {p["package"]: p for p in sample["facts"]["python_packages"]}
assert packages["slow"]["cumulative_ns"] >= 100e6 and packages["slow"]["modules"] >= 4
assert "colorsys" in packages
assert len(sample["lanes"]) >= 2, sample["lanes"]
P
  PYTHONPATH=$TMP/site expect 0 "Python without imports to see" "${RUN[@]}" -- python3 -I -c 'pass'
fi
finish
