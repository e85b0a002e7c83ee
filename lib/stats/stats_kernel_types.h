// One function per element type that has a source file of its own, so that they
// compile side by side. Internal to lib/stats.

#ifndef LIB_STATS_STATS_KERNEL_TYPES_H_
#define LIB_STATS_STATS_KERNEL_TYPES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "lib/stats/tensor_stats.h"

namespace firstframe::internal {

// As LaunchStats, for one type.
absl::Status LaunchStatsBf16(const void* data, int64_t numel,
                             const StatsRequest& request, void* scratch,
                             void* stream);
absl::Status LaunchStatsF16(const void* data, int64_t numel,
                            const StatsRequest& request, void* scratch,
                            void* stream);
absl::Status LaunchStatsF32(const void* data, int64_t numel,
                            const StatsRequest& request, void* scratch,
                            void* stream);

}  // namespace firstframe::internal

#endif  // LIB_STATS_STATS_KERNEL_TYPES_H_
