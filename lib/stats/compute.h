// Statistics of a tensor in host memory.

#ifndef LIB_STATS_COMPUTE_H_
#define LIB_STATS_COMPUTE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

struct ComputeOptions {
  StatsRequest request;
  int num_threads = 1;  // the result does not depend on it
  // Row-major index of the first element in the tensor that this one is a part
  // of: a multiple of 8. Statistics of the parts then merge exactly.
  int64_t index_offset = 0;
};

// Reads `tensor` once. Any dtype but F6_* (Unimplemented); InvalidArgument when
// the bytes do not fit the shape or the offset is not a multiple of 8.
absl::StatusOr<TensorStats> ComputeTensorStats(const TensorView& tensor,
                                               const ComputeOptions& options);

}  // namespace firstframe

#endif  // LIB_STATS_COMPUTE_H_
