#!/usr/bin/env bash
source tools/cli_test.sh "$@"

unset FASTVIDEO_TORCH_PROFILE_REGIONS FASTVIDEO_TORCH_PROFILER_DIR

expect 2 "no check" "$TOOL"
err_has 'expected one of --list'
expect 2 "an argument" "$TOOL" --list extra
err_has "unexpected argument 'extra'"

expect 0 "--list" "$TOOL" --list
out_has '^inference_denoising  '
[ "$(wc -l <"$OUT")" -eq 18 ] || fail "--list: expected 18 regions"
expect 0 "--list as JSONL" "$TOOL" --list --format=jsonl
jsonl_valid "$OUT"

expect 0 "a good setting" "$TOOL" --regions=model_loading,profiler_region_training_train
out_has '^selected: model_loading, training_train$'
expect 1 "a misspelt setting" "$TOOL" --regions=inference_denoisin
out_has "did you mean 'inference_denoising'"
expect 1 "an empty setting" "$TOOL" --regions=
out_has 'nothing is collected'

expect 1 "--env with half a setting" \
  env FASTVIDEO_TORCH_PROFILE_REGIONS=model_loading "$TOOL" --env
out_has 'FASTVIDEO_TORCH_PROFILER_DIR is not'
expect 0 "--env" env FASTVIDEO_TORCH_PROFILE_REGIONS=model_loading \
  FASTVIDEO_TORCH_PROFILER_DIR="$TMP" "$TOOL" --env
expect 1 "--env, relative folder" env FASTVIDEO_TORCH_PROFILE_REGIONS=model_loading \
  FASTVIDEO_TORCH_PROFILER_DIR=traces "$TOOL" --env --format=jsonl
jsonl_valid "$OUT"
out_has 'expected an absolute path'

mkdir -p "$TMP/tree"
cat >"$TMP/tree/a.py" <<'PY'
register_profiler_region("decode", "Latents to frames.")
with profiler_region("decod"):
    pass
with profiler_region("decode"):
    pass
PY
echo '- `profiler_region_decode`' >"$TMP/tree/a.md"
expect 1 "--source" "$TOOL" --source="$TMP/tree"
out_has "a.py:2: error: region 'decod' is entered but not registered; nearest registered name: 'decode' \[misspelt\]"
expect 1 "--source for GitHub" "$TOOL" --source="$TMP/tree" --format=github
out_has '^::error file=.*/a.py,line=2,title=misspelt::'
expect 1 "--source as JSONL" "$TOOL" --source="$TMP/tree" --format=jsonl
jsonl_valid "$OUT"
expect 0 "--source --exclude" "$TOOL" --source="$TMP/tree" --exclude='a.*'
expect 2 "a missing tree" "$TOOL" --source="$TMP/absent"
err_has 'absent: No such file'
printf 'region { name: "decod" description: "mine" }' >"$TMP/r.textproto"
expect 0 "--registry" "$TOOL" --source="$TMP/tree" --registry="$TMP/r.textproto"
printf 'region { nme: 1 }' >"$TMP/r.textproto"
expect 2 "a broken registry" "$TOOL" --list --registry="$TMP/r.textproto"
err_has 'r.textproto:1:'

trace='[{"ph":"X","name":"fastvideo.region::model_loading","ts":1,"dur":2}]'
expect_stdin 0 "--trace=-" "$trace" "$TOOL" --trace=-
out_has 'model_loading  1 times'
expect_stdin 1 "a trace without regions" '[]' "$TOOL" --trace=-
expect 2 "a missing trace" "$TOOL" --trace="$TMP/absent"
"$TOOL" --list >/dev/full 2>"$ERR"
[ $? -eq 2 ] || fail "--list to a full disk"

check_contract
finish
