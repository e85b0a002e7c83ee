// One way of moving a module between host and device, for measuring it.

#ifndef LIB_OFFLOAD_OFFLOAD_CYCLER_H_
#define LIB_OFFLOAD_OFFLOAD_CYCLER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/frozen_store.h"
#include "lib/offload/module.h"
#include "lib/offload/offload_result.h"
#include "lib/safetensors/checkpoint.h"

namespace firstframe {

// What the module is made of.
struct OffloadSource {
  const Checkpoint* checkpoint = nullptr;
  uint64_t synthetic_bytes = 0;  // when there is no checkpoint
};

// Thread-compatible.
class OffloadCycler {
 public:
  virtual ~OffloadCycler() = default;
  // Brings the module to the device and waits until every byte is there. Errors
  // of these three are the store's; the current device stays as it was.
  virtual absl::Status Load() = 0;
  // Returns as soon as the caller may go on; the device may still be busy.
  virtual absl::Status Unload() = 0;
  // Waits for the store's stream, so until the device memory is free.
  virtual absl::Status Settle() { return absl::OkStatus(); }
  // Sets h2d_bytes and the like to the totals so far.
  virtual OffloadSample Totals() const = 0;
  // Sets what is true of the whole run: memory, times spent once, notes.
  virtual void Describe(StrategyResult& result) const = 0;
  OffloadModule& module() { return *module_; }

 protected:
  explicit OffloadCycler(std::unique_ptr<OffloadModule> module)
      : module_(std::move(module)) {}
  std::unique_ptr<OffloadModule> module_;
};

// Makes the module of `source` and what moves it as `strategy` says.
// Unavailable and InvalidArgument, with the reason, when this source or machine
// does not allow it. `runtime` null: no device, nothing moves.
absl::StatusOr<std::unique_ptr<OffloadCycler>> MakeOffloadCycler(
    OffloadStrategy strategy, const OffloadSource& source, int device,
    const FrozenStoreOptions& options, cuda::Runtime* runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_OFFLOAD_CYCLER_H_
