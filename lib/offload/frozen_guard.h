// Proof that a module was frozen: hashes of what is on the device against
// hashes of the host copy.

#ifndef LIB_OFFLOAD_FROZEN_GUARD_H_
#define LIB_OFFLOAD_FROZEN_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/cuda/runtime.h"
#include "lib/load/plan.h"
#include "lib/offload/copy_plan.h"
#include "lib/offload/host_tier.h"
#include "lib/offload/module.h"

namespace firstframe {

// Hashes the tensors of `plan` in device memory: HashDeviceArena
// (lib/load/tensor_hash.h), or a test's.
using DeviceHash = std::function<absl::StatusOr<std::vector<uint64_t>>(
    const LoadPlan& plan, const std::byte* arena, cuda::Runtime& runtime)>;

class FrozenGuard {
 public:
  // `hash` empty: HashDeviceArena.
  explicit FrozenGuard(DeviceHash hash);

  // Compares what lies at `base` with the tier's ranges; the work that may have
  // written there must be done. Hashes the tier the first time, on `threads`.
  // DataLoss names the tensor that differs.
  absl::Status Check(const OffloadModule& module, const HostTier& tier,
                     absl::Span<const PlacedRange> ranges,
                     const std::byte* base, int threads,
                     cuda::Runtime& runtime);

 private:
  absl::Status HashTier(const HostTier& tier, int threads);

  const DeviceHash hash_;
  std::vector<uint64_t> host_hashes_;  // of each range, once known
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_FROZEN_GUARD_H_
