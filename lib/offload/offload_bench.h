// Measures what keeping a frozen module on the host costs, each way of doing it
// in the same run and against the same limit.

#ifndef LIB_OFFLOAD_OFFLOAD_BENCH_H_
#define LIB_OFFLOAD_OFFLOAD_BENCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/frozen_store.h"
#include "lib/safetensors/checkpoint.h"

namespace firstframe {

enum class OffloadStrategy {
  kFrozen,     // FrozenStore over a host copy
  kRoundtrip,  // what module.to("cpu") and .to("cuda") do: the baseline
  kMapped,     // FrozenStore over the page cache of the files
  kLayerwise,  // LayerwiseStore: one pass over all blocks is a cycle
};

absl::string_view OffloadStrategyName(OffloadStrategy strategy);
std::optional<OffloadStrategy> ParseOffloadStrategy(absl::string_view name);

struct OffloadBenchOptions {
  std::vector<OffloadStrategy> strategies = {OffloadStrategy::kFrozen,
                                             OffloadStrategy::kRoundtrip};
  int cycles = 5;
  absl::Duration rest;  // after each cycle; not part of its times
  int device = 0;
  FrozenStoreOptions store;
  uint64_t limit_block_bytes = uint64_t{256} << 20;  // of the limit's copies
  bool verify = true;  // compare hashes of all tensors after the last cycle

  std::function<bool()> is_cancelled;  // asked between cycles; may be empty
  std::function<void(double fraction)> on_progress;
};

struct OffloadSample {
  int64_t load_ns = 0;  // until every byte is on the device
  // The pass of kLayerwise is its load; it has no unload.
  int64_t unload_ns = 0;  // until the caller may go on
  int64_t settle_ns = 0;  // from there until the device memory is free
  // Of load_ns, where a FrozenStore loads: the calling thread's, before it
  // waits for the copies.
  int64_t allocate_ns = 0;
  int64_t submit_ns = 0;
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;
  uint64_t d2h_avoided_bytes = 0;
};

struct StrategyResult {
  OffloadStrategy strategy = OffloadStrategy::kFrozen;
  std::string skipped;  // why it was not run; then nothing below is set
  std::vector<OffloadSample> samples;
  uint64_t pinned_bytes = 0;
  uint64_t pageable_bytes = 0;
  uint64_t mapped_bytes = 0;
  uint64_t device_bytes = 0;  // while loaded
  uint64_t copies = 0;        // of one load; 0 unknown
  // Once, before or in the first cycle; the first sample includes what its Load
  // did of them.
  int64_t populate_ns = 0;
  int64_t fill_ns = 0;
  int64_t pin_ns = 0;
  // After the first cycle and after the last.
  int64_t resident_bytes[2] = {};     // of this process
  int64_t device_free_bytes[2] = {};  // of the device
  std::optional<bool> verified;       // on the device and back on the host
  std::vector<std::string> degraded;
};

struct OffloadBenchResult {
  uint64_t tensors = 0;
  uint64_t tensor_bytes = 0;
  bool is_identity = false;  // no device: nothing moves
  // Pinned host memory to the device, limit_block_bytes at a time, before the
  // strategies and after them: the limit is the larger. Empty without a device
  // and where not even that much could be pinned.
  std::vector<double> pinned_h2d_gb_per_s;
  std::vector<StrategyResult> strategies;

  double limit_gb_per_s() const;  // 0 when not measured
};

// What the module is made of.
struct OffloadSource {
  const Checkpoint* checkpoint = nullptr;
  uint64_t synthetic_bytes = 0;  // when there is no checkpoint
};

// Runs every strategy in turn. `runtime` null: no device, the identity. A
// strategy that this source or machine does not allow is skipped with the
// reason; Cancelled and errors of the device end the run.
absl::StatusOr<OffloadBenchResult> RunOffloadBench(
    const OffloadSource& source, const OffloadBenchOptions& options,
    cuda::Runtime* runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_OFFLOAD_BENCH_H_
