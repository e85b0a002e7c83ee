// Statistics of a tensor in device memory: one kernel, one read of the tensor,
// no intermediate tensor, nothing copied back but the result, and no wait until
// somebody asks for it.
//
// The kernel runs on a grid that does not depend on the device, and adds in a
// fixed order: the same tensor gives the same bits on every GPU. Hashes,
// counts, extremes, exponents and samples equal ComputeTensorStats; sums and
// sketch agree with it to float32 rounding within groups of 8 (16-bit types) or
// to float64 rounding (others).

#ifndef LIB_STATS_DEVICE_STATS_H_
#define LIB_STATS_DEVICE_STATS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

namespace internal {

// Pinned memory and an event for each result on its way, used again and again:
// to allocate pinned memory takes a driver lock and waits for the device.
// Thread-safe.
class StatsSlots {
 public:
  struct Slot {
    std::byte* result = nullptr;  // of a DeviceSums
    cuda::Event done;
  };

  explicit StatsSlots(cuda::Runtime& runtime) : runtime_(runtime) {}
  absl::StatusOr<Slot> Take();
  void GiveBack(Slot slot);

 private:
  cuda::Runtime& runtime_;
  absl::Mutex mutex_;
  std::vector<cuda::PinnedBuffer> slabs_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::byte*> results_ ABSL_GUARDED_BY(mutex_);
  std::vector<cuda::Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace internal

// Statistics on their way. Movable, thread-compatible.
class PendingStats {
 public:
  PendingStats(PendingStats&&) = default;
  PendingStats& operator=(PendingStats&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(slot_, other.slot_);
    numel_ = other.numel_;
    request_ = other.request_;
    return *this;
  }
  // Its memory is used again, so that a kernel in flight is waited for.
  ~PendingStats();

  // Never waits.
  absl::StatusOr<bool> IsReady() const { return slot_.done.IsComplete(); }
  // Waits for the kernel if it must.
  absl::StatusOr<TensorStats> Read() const;

 private:
  friend class DeviceStats;
  PendingStats(std::shared_ptr<internal::StatsSlots> slots,
               internal::StatsSlots::Slot slot, int64_t numel,
               StatsRequest request)
      : slots_(std::move(slots)),
        slot_(std::move(slot)),
        numel_(numel),
        request_(request) {}

  std::shared_ptr<internal::StatsSlots> slots_;  // null: moved from
  internal::StatsSlots::Slot slot_;
  int64_t numel_;
  StatsRequest request_;
};

// Holds the scratch memory of one stream's kernels (about 2 MB). Thread-
// compatible; calls are ordered on the stream given to each.
class DeviceStats {
 public:
  // Unimplemented without CUDA; Unavailable without a device.
  static absl::StatusOr<std::unique_ptr<DeviceStats>> Create(
      cuda::Runtime& runtime = cuda::GetRuntime());

  // Enqueues the kernel on `stream` behind whatever writes the tensor.
  // `data` is memory of the current device, of `numel` elements, at any
  // alignment of its element. Unimplemented for F4, F6, F8_E8M0 and the FNUZ
  // types. The next call on another stream must wait for this one.
  absl::StatusOr<PendingStats> Enqueue(const void* data, DType dtype,
                                       int64_t numel,
                                       const StatsRequest& request,
                                       cuda::StreamHandle stream);

  // For benchmarks: enqueues the kernel alone, with nothing copied.
  absl::Status EnqueueKernel(const void* data, DType dtype, int64_t numel,
                             const StatsRequest& request,
                             cuda::StreamHandle stream);

 private:
  DeviceStats(cuda::DeviceBuffer scratch, cuda::Runtime& runtime)
      : scratch_(std::move(scratch)),
        runtime_(runtime),
        slots_(std::make_shared<internal::StatsSlots>(runtime)) {}

  cuda::DeviceBuffer scratch_;
  cuda::Runtime& runtime_;
  const std::shared_ptr<internal::StatsSlots> slots_;
};

}  // namespace firstframe

#endif  // LIB_STATS_DEVICE_STATS_H_
