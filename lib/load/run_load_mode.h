// One load in one mode, with what it says of itself. Internal to
// weight_bench.cc, which times it.

#ifndef LIB_LOAD_RUN_LOAD_MODE_H_
#define LIB_LOAD_RUN_LOAD_MODE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "lib/dist/collective.h"
#include "lib/load/load_mode.h"
#include "lib/load/loader.h"
#include "lib/load/weight_bench_types.h"

namespace firstframe {

// Fills the arena (device memory when `to_device`) on every rank of `group` and
// sets what `*sample` has of phases, paths and degraded ways. The caller waits
// for the device.
absl::Status RunLoadMode(LoadMode mode, CheckpointLoader& loader,
                         std::byte* arena, bool to_device, Collective& group,
                         const WeightBenchOptions& options, LoadSample* sample);

}  // namespace firstframe

#endif  // LIB_LOAD_RUN_LOAD_MODE_H_
