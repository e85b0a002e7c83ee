// What differs between a build with CUDA and one without. Internal to
// device_stats.cc.

#ifndef LIB_STATS_DEVICE_STATS_LAUNCH_H_
#define LIB_STATS_DEVICE_STATS_LAUNCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

absl::StatusOr<int64_t> DeviceStatsScratchBytes();
absl::Status LaunchDeviceStats(const void* data, DType dtype, int64_t numel,
                               const StatsRequest& request, void* scratch,
                               void* stream);

}  // namespace firstframe

#endif  // LIB_STATS_DEVICE_STATS_LAUNCH_H_
