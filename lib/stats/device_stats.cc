#include "lib/stats/device_stats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/base/status_macros.h"
#include "lib/stats/device_stats_launch.h"
#include "lib/stats/stats_kernel.h"

namespace firstframe {
namespace internal {

absl::StatusOr<StatsSlots::Slot> StatsSlots::Take() {
  constexpr size_t kSlabResults = 64;
  absl::MutexLock lock(&mutex_);
  if (results_.empty()) {
    FF_ASSIGN_OR_RETURN(cuda::PinnedBuffer slab,
                        cuda::PinnedBuffer::Allocate(
                            kSlabResults * sizeof(DeviceSums), runtime_));
    for (size_t i = 0; i < kSlabResults; ++i) {
      results_.push_back(slab.data() + i * sizeof(DeviceSums));
    }
    slabs_.push_back(std::move(slab));
  }
  if (events_.empty()) {
    FF_ASSIGN_OR_RETURN(
        cuda::Event event,
        cuda::Event::Create(cuda::EventKind::kOrdering, runtime_));
    events_.push_back(std::move(event));
  }
  Slot slot = {results_.back(), std::move(events_.back())};
  results_.pop_back();
  events_.pop_back();
  return slot;
}

void StatsSlots::GiveBack(Slot slot) {
  absl::MutexLock lock(&mutex_);
  results_.push_back(slot.result);
  events_.push_back(std::move(slot.done));
}

}  // namespace internal

absl::StatusOr<std::unique_ptr<DeviceStats>> DeviceStats::Create(
    cuda::Runtime& runtime) {
  FF_ASSIGN_OR_RETURN(const int64_t size, DeviceStatsScratchBytes());
  FF_ASSIGN_OR_RETURN(cuda::DeviceBuffer scratch,
                      cuda::DeviceBuffer::Allocate(size, runtime));
  FF_RETURN_IF_ERROR(runtime.FillAsync(scratch.data(), 0, size, nullptr));
  FF_RETURN_IF_ERROR(runtime.SynchronizeStream(nullptr));
  return std::unique_ptr<DeviceStats>(
      new DeviceStats(std::move(scratch), runtime));
}

absl::Status DeviceStats::EnqueueKernel(const void* data, DType dtype,
                                        int64_t numel,
                                        const StatsRequest& request,
                                        cuda::StreamHandle stream) {
  return LaunchDeviceStats(data, dtype, numel, request, scratch_.data(),
                           stream);
}

absl::StatusOr<PendingStats> DeviceStats::Enqueue(const void* data, DType dtype,
                                                  int64_t numel,
                                                  const StatsRequest& request,
                                                  cuda::StreamHandle stream) {
  FF_ASSIGN_OR_RETURN(internal::StatsSlots::Slot slot, slots_->Take());
  FF_RETURN_IF_ERROR(EnqueueKernel(data, dtype, numel, request, stream));
  FF_RETURN_IF_ERROR(runtime_.CopyAsync(
      {slot.result, scratch_.data(), sizeof(DeviceSums)}, stream));
  FF_RETURN_IF_ERROR(slot.done.Record(stream));
  return PendingStats(slots_, std::move(slot), numel, request);
}

PendingStats::~PendingStats() {
  if (slots_ == nullptr) return;
  slot_.done.Synchronize().IgnoreError();
  slots_->GiveBack(std::move(slot_));
}

absl::StatusOr<TensorStats> PendingStats::Read() const {
  FF_RETURN_IF_ERROR(slot_.done.Synchronize());
  DeviceSums sums;
  std::memcpy(&sums, slot_.result, sizeof(sums));
  TensorStats s;
  s.numel = numel_;
  s.nan = static_cast<int64_t>(sums.nan);
  s.inf_pos = static_cast<int64_t>(sums.inf_pos);
  s.inf_neg = static_cast<int64_t>(sums.inf_neg);
  s.zero = static_cast<int64_t>(sums.zero);
  if (s.finite() > 0) {
    const double n = static_cast<double>(s.finite());
    s.sum = sums.sum;
    s.abs_sum = sums.abs_sum;
    s.mean = sums.sum / n;
    s.m2 = std::max(0.0, sums.squares - sums.sum * s.mean);
    s.min = sums.min;
    s.max = sums.max;
    s.amax = sums.amax;
    s.amax_index = sums.amax_index;
  }
  if (request_.hashes) {
    s.h_set = sums.h_set;
    s.h_pos = sums.h_pos;
  }
  if (request_.sketch) {
    std::copy(sums.sketch, sums.sketch + kSketchSize, s.sketch.begin());
  }
  if (request_.exponents) {
    std::copy(sums.exponents, sums.exponents + kNumExponents,
              s.exponents.begin());
  }
  if (request_.samples && numel_ > 0) {
    std::copy(sums.samples, sums.samples + kNumSamples, s.samples.begin());
  }
  return s;
}

}  // namespace firstframe
