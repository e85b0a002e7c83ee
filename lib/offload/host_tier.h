// Where a frozen module rests: one copy of its bytes in host memory, each byte
// once, made or adopted a single time.

#ifndef LIB_OFFLOAD_HOST_TIER_H_
#define LIB_OFFLOAD_HOST_TIER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/module.h"
#include "lib/offload/pinned_arena.h"
#include "lib/safetensors/checkpoint.h"

namespace firstframe {

// Movable; immutable once made.
struct HostTier {
  // As FindStorageRanges of the module. Memory may be read-only.
  std::vector<StorageRange> ranges;
  std::shared_ptr<const void> storage;  // keeps all of `ranges` alive

  uint64_t pinned_bytes = 0;
  uint64_t pageable_bytes = 0;
  uint64_t mapped_bytes = 0;  // of files, pinned in place; no memory was added
  int64_t populate_ns = 0;    // touching its pages
  int64_t fill_ns = 0;        // copying or reading into it
  int64_t pin_ns = 0;
  uint64_t d2h_bytes = 0;  // copied back once, from tensors on a device
  std::vector<std::string> degraded;  // what was not done as meant, in words

  // All ranges lie in one arena, in their order, so that the gaps between them
  // may be copied along.
  bool is_arena = false;

  // Addresses that one copy must not span, ascending.
  std::vector<const std::byte*> cuts;

  // FailedPrecondition when files under it changed. Empty: nothing to check.
  std::function<absl::Status()> check_unchanged;
};

// Copies every range of `module` into one arena, pinned as `options` say. With
// nothing to pin, ranges in host memory are adopted where they are. Tensors
// stay pointed at what they were. Waits for the copies. ResourceExhausted when
// there is no memory.
absl::StatusOr<HostTier> CopyToHost(const OffloadModule& module,
                                    const PinOptions& options,
                                    cuda::Runtime& runtime);

// A module whose tensors lie in the tier.
struct HostModule {
  std::unique_ptr<OffloadModule> module;
  HostTier tier;
};

// Reads `checkpoint` (lib/load) straight into the arena: there is no other
// copy. `runtime` null: pageable memory. Errors of LoadCheckpoint.
absl::StatusOr<HostModule> ReadToHost(const Checkpoint& checkpoint,
                                      const PinOptions& options,
                                      cuda::Runtime* runtime);

// Maps the files and pins their page cache in place: no host memory is added.
// The mapping is read by the copy engines alone, so a file that is cut
// meanwhile costs no SIGBUS; check_unchanged tells. Unavailable on network file
// systems and where a file mapping cannot be pinned whole. `runtime` null: not
// pinned; tensors are then read through the mapping, where a file that is cut
// does cost SIGBUS.
absl::StatusOr<HostModule> MapToHost(const Checkpoint& checkpoint,
                                     const PinOptions& options,
                                     cuda::Runtime* runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_HOST_TIER_H_
