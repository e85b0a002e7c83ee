// Shapes: row-major, outermost dimension first.

#ifndef LIB_TENSOR_SHAPE_H_
#define LIB_TENSOR_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/tensor/dtype.h"

namespace firstframe {

// Empty for a scalar (0-d), which has one element.
using Shape = std::vector<int64_t>;

// Returns the product of `shape`, taken left to right, or nothing when a
// dimension is negative or a partial product overflows int64. So [2^62, 4, 0]
// has none and [0, 2^62, 4] has 0 elements, as in the safetensors reference.
std::optional<int64_t> CheckedNumElements(absl::Span<const int64_t> shape);

// Returns the bytes that a tensor takes, or nothing when the count overflows or
// the bits do not fill whole bytes (F4 and F6).
std::optional<int64_t> CheckedSizeBytes(DType dtype,
                                        absl::Span<const int64_t> shape);

// Returns "[1, 16, 3, 60, 104]".
std::string ShapeToString(absl::Span<const int64_t> shape);

}  // namespace firstframe

#endif  // LIB_TENSOR_SHAPE_H_
