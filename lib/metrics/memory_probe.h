// Peak device memory of an interval, from whoever can tell.

#ifndef LIB_METRICS_MEMORY_PROBE_H_
#define LIB_METRICS_MEMORY_PROBE_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/metrics/perf_record.h"

namespace firstframe {

// An allocator that counts, or a sampler. Implementations need not be
// thread-safe: one request or training loop uses one probe.
class MemoryProbe {
 public:
  virtual ~MemoryProbe() = default;
  // Begins an interval.
  virtual void ResetPeak() = 0;
  // Called at stage boundaries; a counting allocator ignores it.
  virtual void Sample() {}
  // Peaks since ResetPeak(), or nothing when they are not known.
  virtual std::optional<MemoryPeaks> Peaks() = 0;
};

// Samples what the device has in use, by any process, at stage boundaries. Both
// peaks are that figure: it holds the context and what an allocator keeps, and
// misses peaks inside a stage. A sample takes some 10 us.
class SampledDeviceMemory final : public MemoryProbe {
 public:
  // `runtime` must outlive the probe; its current device is sampled.
  explicit SampledDeviceMemory(cuda::Runtime& runtime) : runtime_(runtime) {}

  void ResetPeak() override {
    peak_.reset();
    Sample();
  }
  void Sample() override {
    const absl::StatusOr<cuda::MemoryInfo> info = runtime_.GetMemoryInfo();
    if (!info.ok()) return;
    peak_ = std::max(peak_.value_or(0), info->total_bytes - info->free_bytes);
  }
  std::optional<MemoryPeaks> Peaks() override {
    Sample();
    if (!peak_) return std::nullopt;
    return MemoryPeaks{*peak_, *peak_};
  }

 private:
  cuda::Runtime& runtime_;
  std::optional<int64_t> peak_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_MEMORY_PROBE_H_
