#!/usr/bin/env bash
# gpu_check.sh: runs every GPU test and benchmark and prints a line for each.
#
#   tools/gpu_check.sh [--only=REGEX] [--out=FOLDER]   builds with Bazel and runs here
#   tools/gpu_check.sh --pack=FOLDER [--only=REGEX]    builds into FOLDER, which then needs
#                                                      neither Bazel nor a toolkit:
#   FOLDER/gpu_check.sh [--only=REGEX] [--out=FOLDER]  runs it
#
# Logs go to --out (default: a new folder under /tmp). Exits 1 when a test failed, 3 without a GPU.
set -u

# Tests are found by their tag "gpu". A benchmark has a line here: target, arguments.
BENCHMARKS=(
  "//lib/wan_vae/cuda:conv_benchmark"
  "//lib/wan_vae/cuda:decode_benchmark"
  "//tools:offload_bench --bytes=4294967296 --strategy=frozen,roundtrip,layerwise"
)
readonly SECONDS_EACH=120

only=. out= pack=
for flag in "$@"; do
  case $flag in
    --only=*) only=${flag#*=} ;;
    --out=*) out=${flag#*=} ;;
    --pack=*) pack=${flag#*=} ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu_check: unknown flag $flag; try --help" >&2; exit 2 ;;
  esac
done
here=$(cd "$(dirname "$0")" && pwd)

# Copies a program, the libraries that a bare machine lacks, and its test data.
pack_program() {
  local program=$1 to=$2
  strip -o "$to/bin/$(basename "$program")" "$program" || return
  ldd "$program" | awk '$3 ~ /^\// {print $3}' |
    grep -vE '/(libc|libm|libgcc_s|libstdc\+\+|libpthread|libdl|librt)\.so' |
    while read -r library; do cp -Lu "$library" "$to/lib/"; done
  local data=$program.runfiles/firstframe/testdata
  if [ -d "$data" ]; then cp -rLu "$data" "$to/"; fi
}

# Builds everything into a folder and writes its list: kind, program, arguments.
build_into() {
  local to=$1
  mkdir -p "$to/bin" "$to/lib" || return
  cp "$here/gpu_check.sh" "$to/" || return
  cd "$here/.." || return
  local tests benchmark targets=()
  tests=$(bazel query 'attr(tags, "\bgpu\b", tests(//...))' 2>/dev/null | grep -E "$only")
  for benchmark in "${BENCHMARKS[@]}"; do
    if [[ $benchmark =~ $only ]]; then targets+=("${benchmark%% *}"); fi
  done
  # shellcheck disable=SC2086
  bazel build --noshow_progress $tests "${targets[@]}" || return
  : >"$to/list"
  local target file
  for target in $tests "${targets[@]}"; do
    file=${target#//}
    file=${file/:/\/}
    pack_program "bazel-bin/$file" "$to" || return
  done
  for target in $tests; do echo "test ${target##*:}" >>"$to/list"; done
  for benchmark in "${BENCHMARKS[@]}"; do
    if [[ $benchmark =~ $only ]]; then echo "benchmark ${benchmark##*:}" >>"$to/list"; fi
  done
}

run_from() {
  local from=$1 worst=0 kind program arguments code start
  if ! command -v nvidia-smi >/dev/null || ! nvidia-smi -L; then
    echo "gpu_check: no GPU here: nvidia-smi found none" >&2
    return 3
  fi
  export LD_LIBRARY_PATH=$from/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  cd "$from" || return 2
  while read -r kind program arguments; do
    [[ $program =~ $only ]] || continue
    start=$SECONDS
    # shellcheck disable=SC2086
    timeout $SECONDS_EACH "./bin/$program" $arguments </dev/null >"$out/$program.log" 2>&1
    code=$?
    printf '%-10s %-32s %4d s  exit %d' "$kind" "$program" $((SECONDS - start)) $code
    if [ "$kind" = test ]; then
      printf '  %s passed, %s skipped, %s failed\n' "$(grep -c '^\[       OK' "$out/$program.log")" \
        "$(grep -c '^\[  SKIPPED \] .* ms)' "$out/$program.log")" "$(grep -c '^\[  FAILED  \] .* ms)' "$out/$program.log")"
      grep -E 'Failure$' -A4 "$out/$program.log" | head -12 | sed 's/^/    /'
    else
      printf '\n'
      grep -v '^  ' "$out/$program.log" | tail -60 | sed 's/^/    /'
    fi
    if [ $code -ne 0 ]; then worst=1; fi
  done <"$from/list"
  echo "logs: $out"
  return $worst
}

if [ -n "$pack" ]; then
  build_into "$(mkdir -p "$pack" && cd "$pack" && pwd)"
  exit
fi
if [ -z "$out" ]; then out=$(mktemp -d /tmp/gpu_check.XXXXXX); fi
mkdir -p "$out" && out=$(cd "$out" && pwd)
if [ -f "$here/list" ]; then
  run_from "$here"
else
  built=$(mktemp -d)
  trap 'rm -rf "$built"' EXIT
  build_into "$built" && run_from "$built"
fi
