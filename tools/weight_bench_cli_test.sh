#!/usr/bin/env bash
source tools/cli_test.sh "$@"

unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT OMPI_COMM_WORLD_SIZE \
  SLURM_STEP_ID SLURM_PROCID

# write_file PATH TENSORS BYTES: a checkpoint of U8 tensors of equal size.
write_file() {
  local header='{' i size=$3
  for ((i = 0; i < $2; i++)); do
    header+="\"block.$i.weight\":{\"dtype\":\"U8\",\"shape\":[$size],\"data_offsets\":[$((i * size)),$(((i + 1) * size))]},"
  done
  header="${header%,}}"
  local n=${#header} k
  for ((k = 0; k < 8; k++)); do
    printf "\\x$(printf %02x $(((n >> (8 * k)) & 255)))"
  done >"$1"
  printf %s "$header" >>"$1"
  head -c $(($2 * size)) /dev/urandom >>"$1"
}

mkdir -p "$TMP/model/transformer"
FILE=$TMP/model/transformer/model.safetensors
write_file "$FILE" 20 100003
BENCH=("$TOOL" --device=cpu --model_path="$TMP/model" --subfolder=transformer --repeats=2)

expect 2 "no model" "$TOOL"
err_has -- '--model_path is needed'
expect 2 "an argument" "$TOOL" --model_path="$TMP/model" extra
err_has "unexpected argument 'extra'"
expect 2 "a missing folder" "$TOOL" --device=cpu --model_path="$TMP/absent"
err_has 'absent'
expect 2 "a misspelt mode" "${BENCH[@]}" --modes=indepndent
err_has "did you mean 'independent'"
expect 2 "a bad cache state" "${BENCH[@]}" --cache=hot
expect 2 "no repeats" "${BENCH[@]}" --repeats=0
err_has -- '--repeats'
expect 2 "half a launcher" env RANK=0 "${BENCH[@]}"
err_has 'WORLD_SIZE is not set'

expect 0 "the default modes" "${BENCH[@]}" --verify
out_has '^20 tensors, 0\.002 GB, 1 file'
out_has '^to_cpu '
out_has '^host .*yes$'
out_has 'limits measured in this run'

expect 0 "all modes as JSON" "${BENCH[@]}" --verify --format=json \
  --modes=to_cpu,to_gpu,host,independent,independent_per_tensor,broadcast_sync,broadcast_async,broadcast_bucketed,shard_allgather,registered
json_valid "$OUT"
out_has '"name": "firstframe.weight_bench"'
out_has '"skipped": "needs a device"'
out_has '"skipped": "needs more than one rank"'
[ "$(grep -c '"verified": true' "$OUT")" -ge 12 ] || fail "JSON: verdicts are missing"

expect 0 "the mode that the limits favour" "${BENCH[@]}" --modes=auto --verify
out_has '^auto is host: host [0-9.]* GB/s by host_copy; measured in'

expect 0 "FastVideo's table" "${BENCH[@]}" --format=github --roofline=false
out_has '^\| Ranks \| Independent read \| Sync broadcast \| Speedup '

expect 0 "a warm cache" "${BENCH[@]}" --cache=warm --format=json --modes=host
out_has '"resident_before": 1'
# Cold is proven or refused (a file system in memory cannot be cold).
"${BENCH[@]}" --cache=cold --format=json --modes=host --verify >"$OUT" 2>"$ERR"
case $? in
  0) json_valid "$OUT" ;;
  2) err_has 'not cold|cannot prove|server' ;;
  *) fail "a cold cache: exit $?" ;;
esac

# A file that is shorter than its header promises is refused before any load.
cp "$FILE" "$TMP/cut.safetensors"
truncate -s -5 "$TMP/cut.safetensors"
expect 2 "a short file" "$TOOL" --device=cpu --model_path="$TMP/cut.safetensors"
err_has 'cut.safetensors'

expect 3 "a GPU that is not there" env CUDA_VISIBLE_DEVICES= "$TOOL" --device=cuda --model_path="$FILE"

# Four CPU ranks over Open MPI.
if command -v mpirun >/dev/null; then
  export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
  export HOME=$TMP
  MPI=(timeout 120 mpirun -n 4 --allow-run-as-root --oversubscribe)
  expect 0 "four ranks" "${MPI[@]}" "${BENCH[@]}" --verify --format=json --threads=1 --bucket_mib=1
  json_valid "$OUT"
  out_has '"ranks": 4'
  out_has '"transport": "mpi"'
  out_has '"mode": "shard_allgather"'
  if grep -q '"verified": false' "$OUT"; then fail "four ranks: wrong bytes"; fi
  # Only rank 0 has a result, and the others do not write over it.
  expect 0 "four ranks, one file" "${MPI[@]}" "${BENCH[@]}" --modes=host --roofline=false --threads=1 \
    --format=json --output="$TMP/ranks.json"
  json_valid "$TMP/ranks.json"
  [ -s "$TMP/ranks.json" ] || fail "four ranks: --output is empty"

  # One rank cannot read its file: all leave with an error, and nothing hangs.
  start=$SECONDS
  "${MPI[@]}" bash -c 'path=$1; shift
    [ "$OMPI_COMM_WORLD_RANK" != 2 ] || path=/no/such/model
    exec "$@" --model_path="$path" --subfolder=' bash "$TMP/model/transformer" \
    "$TOOL" --device=cpu --timeout=20 --threads=1 >"$OUT" 2>"$ERR"
  [ $? -ne 0 ] || fail "a rank without a model: exit 0"
  [ $((SECONDS - start)) -lt 60 ] || fail "a rank without a model: took $((SECONDS - start)) s"
fi

check_contract
finish
