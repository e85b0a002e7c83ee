// Keeps a frozen module on the host between uses, without ever copying it back.
//
// module.to("cpu") allocates host memory and copies every weight over the bus.
// The weights of a module that only runs inference are, on the device, the very
// bytes that were copied in; so Unload() points each tensor at the host copy it
// came from and lets the device memory go.

#ifndef LIB_OFFLOAD_FROZEN_STORE_H_
#define LIB_OFFLOAD_FROZEN_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/copy_lane.h"
#include "lib/offload/copy_plan.h"
#include "lib/offload/frozen_guard.h"
#include "lib/offload/host_tier.h"
#include "lib/offload/module.h"
#include "lib/offload/pinned_arena.h"

namespace firstframe {

struct FrozenStoreOptions {
  PinOptions pin;
  // Device memory comes in chunks, each allocated while those before are being
  // copied. The first is small, as nothing can be copied until it is there.
  // Tensors are never split.
  ChunkSizes chunks = {uint64_t{32} << 20, uint64_t{1} << 30};
  // Compare each tensor on the device with the host copy before Unload. Costs a
  // pass over device memory per cycle, and one over the host copy the first
  // time.
  bool guard = false;
  DeviceHash device_hash;  // of the guard; empty: HashDeviceArena
};

// Since the store was made.
struct FrozenStoreStats {
  uint64_t loads = 0;    // that copied something
  uint64_t unloads = 0;  // that freed something
  uint64_t h2d_bytes = 0;
  uint64_t d2h_bytes = 0;  // only ever for the first host copy
  uint64_t d2h_avoided_bytes = 0;
  uint64_t device_bytes = 0;  // held now
  uint64_t copies = 0;        // submitted to the device
  // Of this thread, in Load: getting device memory, and submitting the copies.
  int64_t allocate_ns = 0;
  int64_t submit_ns = 0;
};

// Thread-compatible; one store a module.
class FrozenStore {
 public:
  // Claims `module`, which must outlive the store: FailedPrecondition when
  // another store has it. `runtime` null: there is no device, and Load and
  // Unload do nothing.
  static absl::StatusOr<std::unique_ptr<FrozenStore>> Create(
      OffloadModule* module, cuda::Runtime* runtime,
      const FrozenStoreOptions& options = {});

  // The same for a module that lies in its tier already (host_tier.h).
  static absl::StatusOr<std::unique_ptr<FrozenStore>> CreateWithTier(
      OffloadModule* module, HostTier tier, cuda::Runtime* runtime,
      const FrozenStoreOptions& options = {});

  // Waits for copies in flight, then lets go of the module, which stays where
  // it is and usable: its tensors own their memory.
  ~FrozenStore();

  // Brings the absent tensors to `device`. Returns at once when none is absent:
  // no host copy is then made. Copies run on a stream of the store's own;
  // `compute` (the stream that will use the module; null is the default one)
  // waits for them, the caller does not. FailedPrecondition when the module is
  // on another device, when a tensor was pointed elsewhere meanwhile, or when
  // files under the host copy changed; ResourceExhausted when the device (or,
  // the first time, the host) has no room. After an error every tensor is where
  // it was.
  absl::Status Load(int device, cuda::StreamHandle compute = nullptr);

  // Points every tensor at its host copy and frees the device memory once the
  // work enqueued on `compute` is done; does not wait for it, except with the
  // guard. The memory is then this process's to allocate again (by
  // cudaMallocAsync), and anyone's from the next call on that waits for the
  // device, such as Wait(). Nothing is copied back, but for tensors that the
  // store never loaded: those get their host copy now. DataLoss from the guard
  // names a tensor that changed; the module then stays on the device.
  absl::Status Unload(cuda::StreamHandle compute = nullptr);

  // Waits until what Load and Unload enqueued is done.
  absl::Status Wait();

  const FrozenStoreStats& stats() const { return stats_; }
  // The host copy; null before there is one.
  const HostTier* tier() const { return tier_.has_value() ? &*tier_ : nullptr; }

 private:
  struct Chunk {
    std::shared_ptr<LaneMemory> memory;
    std::vector<PlacedRange> ranges;
  };

  FrozenStore(OffloadModule* module, cuda::Runtime* runtime,
              FrozenStoreOptions options);
  absl::Status CheckPlaces() const;
  absl::Status EnsureTier(cuda::StreamHandle compute);
  absl::StatusOr<std::vector<Chunk>> CopyIn(const std::vector<uint32_t>& ranges,
                                            cuda::StreamHandle compute);
  void PointAtChunk(const Chunk& chunk);
  void PointAtHost();
  void Point(uint32_t tensor, std::byte* data, int device,
             std::shared_ptr<const void> storage);

  OffloadModule* const module_;
  cuda::Runtime* const runtime_;
  const FrozenStoreOptions options_;
  FrozenGuard guard_;
  std::optional<HostTier> tier_;
  std::vector<const std::byte*> places_;  // where each tensor was last pointed
  std::shared_ptr<CopyLane> lane_;
  std::vector<Chunk> chunks_;  // loaded now
  FrozenStoreStats stats_;
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_FROZEN_STORE_H_
