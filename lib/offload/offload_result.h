// What offload_bench measures: its result, before it is written.

#ifndef LIB_OFFLOAD_OFFLOAD_RESULT_H_
#define LIB_OFFLOAD_OFFLOAD_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace firstframe {

enum class OffloadStrategy {
  kFrozen,     // FrozenStore over a host copy
  kRoundtrip,  // what module.to("cpu") and .to("cuda") do: the baseline
  kMapped,     // FrozenStore over the page cache of the files
  kLayerwise,  // LayerwiseStore: one pass over all blocks is a cycle
};

absl::string_view OffloadStrategyName(OffloadStrategy strategy);
std::optional<OffloadStrategy> ParseOffloadStrategy(absl::string_view name);

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
  absl::Duration rest;       // after each cycle; not part of its times
  // Pinned host memory to the device, limit_block_bytes at a time, before the
  // strategies and after them: the limit is the larger. Empty without a device
  // and where not even that much could be pinned.
  std::vector<double> pinned_h2d_gb_per_s;
  std::vector<StrategyResult> strategies;

  double limit_gb_per_s() const;  // 0 when not measured
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_OFFLOAD_RESULT_H_
