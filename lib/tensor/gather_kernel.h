// The kernel of device_gather.h. Internal to device_gather_cuda.cc.

#ifndef LIB_TENSOR_GATHER_KERNEL_H_
#define LIB_TENSOR_GATHER_KERNEL_H_

#include <cstdint>

#include "absl/status/status.h"

namespace firstframe {

inline constexpr int kMaxGatherDimensions = 16;

struct GatherLayout {  // a kernel argument: of fixed size
  int rank = 0;
  int64_t count = 1;
  int64_t shape[kMaxGatherDimensions] = {};
  int64_t strides[kMaxGatherDimensions] = {};
};

// As GatherOnDevice(), also for elements of 16 bytes; `layout.count` is not 0.
absl::Status LaunchGather(const void* data, const GatherLayout& layout,
                          int64_t element_bytes, void* to, void* stream);

}  // namespace firstframe

#endif  // LIB_TENSOR_GATHER_KERNEL_H_
