#include "lib/stats/device_stats_launch.h"
#include "lib/stats/stats_kernel.h"

namespace firstframe {

absl::StatusOr<int64_t> DeviceStatsScratchBytes() {
  return StatsScratchBytes();
}

absl::Status LaunchDeviceStats(const void* data, DType dtype, int64_t numel,
                               const StatsRequest& request, void* scratch,
                               void* stream) {
  return LaunchStats(data, dtype, numel, request, scratch, stream);
}

}  // namespace firstframe
