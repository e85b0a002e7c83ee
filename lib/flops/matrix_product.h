// Products of square matrices on a device, through cuBLAS and cuBLASLt, which
// are opened at run time.

#ifndef LIB_FLOPS_MATRIX_PRODUCT_H_
#define LIB_FLOPS_MATRIX_PRODUCT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/stream.h"
#include "lib/flops/device_peaks.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

// The elements of a product in one arithmetic. All sum in float32; fp8 (E4M3)
// sums with the tensor cores' short accumulator, as its datasheet rate does,
// and writes bfloat16, as torch._scaled_mm does by default.
struct ProductTypes {
  DType in;
  DType out;
};
ProductTypes ProductTypesOf(MathType math);

// Neither copied nor moved. Thread-compatible. Must not outlive its stream.
class MatrixProduct {
 public:
  virtual ~MatrixProduct() = default;

  // Enqueues out[j, i] = sum over k of left[i, k] right[j, k], all row-major
  // and [size, size], on the device of the stream. Internal with cuBLAS' status
  // when it refuses.
  virtual absl::Status Enqueue(const void* left, const void* right,
                               void* out) = 0;
};

// Prepares products of `size`, a multiple of 16. Unavailable without cuBLAS, or
// where the device or the library has no product in this arithmetic (fp8 before
// Ada and CUDA 12).
absl::StatusOr<std::unique_ptr<MatrixProduct>> CreateMatrixProduct(
    MathType math, int64_t size, const cuda::Stream& stream,
    const cuda::LibrarySearch& search);

}  // namespace firstframe

#endif  // LIB_FLOPS_MATRIX_PRODUCT_H_
