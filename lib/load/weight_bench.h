// Times the ways to load a checkpoint, on one rank or many, each sample with
// its phases, the cache state before and after, the slowest rank, a verdict on
// the bytes, and the limit that binds it.

#ifndef LIB_LOAD_WEIGHT_BENCH_H_
#define LIB_LOAD_WEIGHT_BENCH_H_

#include "absl/status/statusor.h"
#include "lib/dist/collective.h"
#include "lib/load/plan.h"
#include "lib/load/weight_bench_types.h"

namespace firstframe {

// Runs all modes in turn. Every rank of `group` must call it with the same
// options. A mode that cannot run here is skipped with its reason; an error of
// a load ends the run on all ranks.
absl::StatusOr<WeightBenchResult> RunWeightBench(
    const LoadSource& source, Collective& group,
    const WeightBenchOptions& options);

}  // namespace firstframe

#endif  // LIB_LOAD_WEIGHT_BENCH_H_
