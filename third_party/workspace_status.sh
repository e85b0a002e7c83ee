#!/bin/sh
# Prints the commit that Bazel stamps into binaries, with "-dirty" when the tree has changes.
if commit=$(git rev-parse --short=12 HEAD 2>/dev/null); then
  [ -z "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] || commit="$commit-dirty"
  echo "BUILD_SCM_REVISION $commit"
fi
