// Launches the statistics kernel. Internal to device_stats_cuda.cc.

#ifndef LIB_STATS_STATS_KERNEL_H_
#define LIB_STATS_STATS_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

// What a block finds, and in the end the whole: sums over finite elements.
struct DeviceSums {
  double sum, abs_sum, squares;
  unsigned long long nan, inf_pos, inf_neg, zero;
  unsigned long long h_set, h_pos;
  long long amax_index;
  float min, max, amax;
  float pad;
  double sketch[kSketchSize];
  unsigned int exponents[kNumExponents];
  float samples[kNumSamples];
};

// Bytes of device scratch: a result, partial sums and a counter, which must be
// zero before the first launch and is zero again behind each.
int64_t StatsScratchBytes();

// Enqueues the kernel; the result is the first DeviceSums of `scratch`.
absl::Status LaunchStats(const void* data, DType dtype, int64_t numel,
                         const StatsRequest& request, void* scratch,
                         void* stream);

}  // namespace firstframe

#endif  // LIB_STATS_STATS_KERNEL_H_
