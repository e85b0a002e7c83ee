#!/bin/bash
# usage: run_test.sh TEST.py PACKAGE   Runs a Python test on the package folder,
# without PyTorch.
set -euo pipefail
export PYTHONPATH=$PWD/$2:$(dirname "$PWD/$1") PYTHONDONTWRITEBYTECODE=1
exec python3 "$1"
