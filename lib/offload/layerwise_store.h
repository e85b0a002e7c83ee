// Runs a frozen module that is larger than the device memory it may have: its
// blocks pass through a ring of two, each copied in while the one before
// computes.

#ifndef LIB_OFFLOAD_LAYERWISE_STORE_H_
#define LIB_OFFLOAD_LAYERWISE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/event.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/copy_lane.h"
#include "lib/offload/copy_plan.h"
#include "lib/offload/host_tier.h"
#include "lib/offload/module.h"
#include "lib/offload/pinned_arena.h"

namespace firstframe {

// Tensors that are needed together.
struct ModuleBlock {
  std::string name;               // "transformer_blocks.3"
  std::vector<uint32_t> tensors;  // by their index in the module
};

// Groups the tensors of `module` by their names up to the first component that
// is a number, in the order of first appearance. Names without one are in no
// block: they stay on the device throughout.
std::vector<ModuleBlock> FindBlocks(const OffloadModule& module);

struct LayerwiseStats {
  uint64_t h2d_bytes = 0;
  uint64_t device_bytes = 0;     // the ring and what stays
  uint64_t prefetch_hits = 0;    // blocks that were on their way when acquired
  uint64_t prefetch_misses = 0;  // copied only then
};

// Thread-compatible. Two blocks may be acquired at a time.
class LayerwiseStore {
 public:
  // Claims `module` (FailedPrecondition when it is taken), makes its host copy
  // (or takes `tier`), finds its blocks, allocates the ring and loads what is
  // in no block. InvalidArgument when there are no blocks, or when tensors of
  // two blocks share memory; ResourceExhausted when the ring has no room.
  // `runtime` null: there is no device, blocks are found and nothing moves.
  static absl::StatusOr<std::unique_ptr<LayerwiseStore>> Create(
      OffloadModule* module, std::optional<HostTier> tier, int device,
      cuda::Runtime* runtime, const PinOptions& options = {});

  // Waits for copies in flight and points every tensor at its host copy.
  ~LayerwiseStore();

  const std::vector<ModuleBlock>& blocks() const { return blocks_; }

  // Points the block's tensors at device memory that holds them once `compute`
  // comes to it, and starts copying the block after it (the first after the
  // last) into the other half of the ring. FailedPrecondition when both halves
  // are acquired.
  absl::Status Acquire(size_t block, cuda::StreamHandle compute = nullptr);

  // Points the block's tensors back at the host; FailedPrecondition when it is
  // not acquired. Without a device nothing is, and it does nothing. Its half of
  // the ring is used again once the work enqueued on `compute` is done.
  absl::Status Release(size_t block, cuda::StreamHandle compute = nullptr);

  absl::Status Wait() {
    return lane_ == nullptr ? absl::OkStatus() : lane_->stream.Synchronize();
  }

  const LayerwiseStats& stats() const { return stats_; }
  const HostTier& tier() const { return tier_; }

 private:
  // Half of the ring.
  struct Slot {
    std::optional<size_t> block;  // that it holds or is getting
    bool is_acquired = false;
    std::shared_ptr<LaneMemory> memory;
    std::optional<cuda::Event> copied;
    std::optional<cuda::Event> released;
    bool was_released = false;
  };

  LayerwiseStore(OffloadModule* module, cuda::Runtime* runtime)
      : module_(module), runtime_(runtime) {}
  absl::Status CheckBlock(size_t block) const;
  absl::Status Prepare(int device);
  absl::Status Fill(Slot& slot, size_t block);
  Slot* FindSlot(size_t block);
  Slot* FindFree();
  void Point(const ChunkLayout& layout, std::byte* base, int device,
             const std::shared_ptr<const void>& storage);
  void PointAtHost(const ChunkLayout& layout);

  OffloadModule* const module_;
  cuda::Runtime* const runtime_;
  HostTier tier_;
  std::vector<ModuleBlock> blocks_;
  std::vector<ChunkLayout> layouts_;  // of each block
  ChunkLayout resident_layout_;
  std::shared_ptr<CopyLane> lane_;
  std::shared_ptr<LaneMemory> resident_;
  Slot slots_[2];
  LayerwiseStats stats_;
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_LAYERWISE_STORE_H_
