// Tensors that are not row-major: strides in elements, of any sign, as PyTorch
// has them. A stride of 0 repeats a dimension.

#ifndef LIB_TENSOR_STRIDES_H_
#define LIB_TENSOR_STRIDES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// Whether the elements lie one after the other in the order of their indices.
// Both spans have a value a dimension; strides of dimensions of size 1 do not
// matter.
bool IsRowMajor(absl::Span<const int64_t> shape,
                absl::Span<const int64_t> strides);

// Whether the elements fill a stretch of memory that begins with the first one,
// without gaps or repetition, in whichever order: channels last, say.
bool IsDense(absl::Span<const int64_t> shape,
             absl::Span<const int64_t> strides);

struct StridedShape {
  Shape shape;
  std::vector<int64_t> strides;
};

// Returns the same elements in the same order with the fewest dimensions: those
// of size 1 go, those that one stride covers become one. A scalar has none.
StridedShape Coalesce(absl::Span<const int64_t> shape,
                      absl::Span<const int64_t> strides);

// Takes runs of neighbouring elements as one element of up to 16 bytes, where
// all of `layout` (of Coalesce()) and `addresses` (of both sides' first
// element, their bits joined by or) allow it. Returns the bytes of an element
// then.
int64_t Widen(int64_t element_bytes, uintptr_t addresses, StridedShape& layout);

// Copies the elements, each of `element_bytes`, to `to` in row-major order.
// `data` is the element whose indices are all 0.
void GatherRowMajor(const std::byte* data, absl::Span<const int64_t> shape,
                    absl::Span<const int64_t> strides, int64_t element_bytes,
                    std::byte* to);

}  // namespace firstframe

#endif  // LIB_TENSOR_STRIDES_H_
