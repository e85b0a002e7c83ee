#!/usr/bin/env bash
# Installs what building, testing and running Firstframe needs on Debian 12.
#
#   ./bootstrap.sh             everything, test programs included
#   ./bootstrap.sh --minimal   what building and running need
#
# Idempotent: a second run only looks. A CUDA toolkit is neither needed nor
# installed; where one is found later, Bazel uses it (see README.md).
set -euo pipefail

build_packages=(
  # Bazel 4.2.3 as Debian ships it, with the rules it must find on this machine.
  bazel-bootstrap bazel-platforms bazel-rules-java
  g++ git pkg-config
  # Libraries.
  libabsl-dev libre2-dev libprotobuf-dev protobuf-compiler
  libgtest-dev libgmock-dev libbenchmark-dev
  libdnnl-dev libsimdjson-dev liburing-dev
  zlib1g-dev libzstd-dev libxxhash-dev libssl-dev
)
# Tests skip what they do not find; these make them skip nothing.
test_packages=(
  chromium clang clang-format hyperfine jq libclang-rt-dev python3
  libopenmpi-dev openmpi-bin
)

case "${1:-}" in
  "") packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  --minimal) packages=("${build_packages[@]}") ;;
  *)
    echo "bootstrap.sh: unknown argument '$1'; it takes --minimal or nothing" >&2
    exit 2
    ;;
esac

if ! command -v apt-get >/dev/null; then
  echo "bootstrap.sh: apt-get was not found; this script is for Debian 12." >&2
  echo "Install the equivalents of: ${packages[*]}" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "bootstrap.sh: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "bootstrap.sh: not root, and sudo was not found; as root, run:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 2
  }
  as_root=(sudo)
fi
echo "bootstrap.sh: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "bootstrap.sh: done; next: bazel run //tools:vae_startup"
