// A strided tensor on a device, made row-major there.

#ifndef LIB_TENSOR_DEVICE_GATHER_H_
#define LIB_TENSOR_DEVICE_GATHER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "lib/tensor/strides.h"

namespace firstframe {

// Enqueues on `stream` (a cudaStream_t) of the current device a kernel that
// copies the elements, each of `element_bytes` (1, 2, 4 or 8), to `to` in
// row-major order. `data` is the element whose indices are all 0; both lie on
// the device. Unimplemented for other sizes, for more than 16 dimensions after
// Coalesce(), and in a build without CUDA.
absl::Status GatherOnDevice(const void* data, const StridedShape& layout,
                            int64_t element_bytes, void* to, void* stream);

}  // namespace firstframe

#endif  // LIB_TENSOR_DEVICE_GATHER_H_
