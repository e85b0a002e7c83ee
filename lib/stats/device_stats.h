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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

// Statistics on their way. Movable, thread-compatible.
class PendingStats {
 public:
  // Never waits.
  absl::StatusOr<bool> IsReady() const { return done_.IsComplete(); }
  // Waits for the kernel if it must.
  absl::StatusOr<TensorStats> Read() const;

 private:
  friend class DeviceStats;
  PendingStats(cuda::PinnedBuffer result, cuda::Event done, int64_t numel,
               StatsRequest request)
      : result_(std::move(result)),
        done_(std::move(done)),
        numel_(numel),
        request_(request) {}

  cuda::PinnedBuffer result_;
  cuda::Event done_;
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
      : scratch_(std::move(scratch)), runtime_(runtime) {}

  cuda::DeviceBuffer scratch_;
  cuda::Runtime& runtime_;
};

}  // namespace firstframe

#endif  // LIB_STATS_DEVICE_STATS_H_
