// A view of a tensor in host memory: dense, row-major, little-endian.

#ifndef LIB_TENSOR_TENSOR_H_
#define LIB_TENSOR_TENSOR_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// Borrows `bytes`, which must outlive the view and hold exactly
// CheckedSizeBytes(dtype, shape) bytes. No alignment is promised: data in a
// checkpoint begins where its header says.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  absl::Span<const std::byte> bytes;
};

// A tensor under the name that a checkpoint gives it.
struct NamedTensor {
  std::string name;
  TensorView view;
};

}  // namespace firstframe

#endif  // LIB_TENSOR_TENSOR_H_
