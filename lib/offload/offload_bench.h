// Measures what keeping a frozen module on the host costs, each way of doing it
// in the same run and against the same limit.

#ifndef LIB_OFFLOAD_OFFLOAD_BENCH_H_
#define LIB_OFFLOAD_OFFLOAD_BENCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/frozen_store.h"
#include "lib/offload/offload_cycler.h"
#include "lib/offload/offload_result.h"

namespace firstframe {

struct OffloadBenchOptions {
  std::vector<OffloadStrategy> strategies = {OffloadStrategy::kFrozen,
                                             OffloadStrategy::kRoundtrip};
  int cycles = 5;
  absl::Duration rest;  // after each cycle
  int device = 0;
  FrozenStoreOptions store;
  uint64_t limit_block_bytes = uint64_t{256} << 20;  // of the limit's copies
  bool verify = true;  // compare hashes of all tensors after the last cycle

  std::function<bool()> is_cancelled;  // asked between cycles; may be empty
  std::function<void(double fraction)> on_progress;
};

// Runs every strategy in turn. `runtime` null: no device, the identity. A
// strategy that this source or machine does not allow is skipped with the
// reason; Cancelled and errors of the device end the run.
absl::StatusOr<OffloadBenchResult> RunOffloadBench(
    const OffloadSource& source, const OffloadBenchOptions& options,
    cuda::Runtime* runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_OFFLOAD_BENCH_H_
