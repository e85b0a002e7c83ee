#include "lib/stats/device_stats_launch.h"

namespace firstframe {
namespace {

absl::Status WithoutCuda() {
  return absl::UnimplementedError(
      "statistics on a device: built without CUDA; rebuild with --config=cuda");
}

}  // namespace

absl::StatusOr<int64_t> DeviceStatsScratchBytes() { return WithoutCuda(); }

absl::Status LaunchDeviceStats(const void*, DType, int64_t, const StatsRequest&,
                               void*, void*) {
  return WithoutCuda();
}

}  // namespace firstframe
