#!/bin/bash
# usage: run_test.sh TEST.py PACKAGE HEADER PAGE   Runs a Python test on the
# package folder, without PyTorch; HEADER is firstframe.h, PAGE from_pytorch.md.
set -euo pipefail
# Python puts the folder of the script first, links resolved: beside the sources
# those would be tested, which have no library.
folder=$TEST_TMPDIR/test
mkdir -p "$folder"
cp -L "$1" "$(dirname "$1")/fakes.py" "$folder/"
export PYTHONPATH=$PWD/$2 FIRSTFRAME_HEADER=$PWD/$3
export FROM_PYTORCH=$PWD/$4 PYTHONDONTWRITEBYTECODE=1
exec python3 "$folder/$(basename "$1")"
