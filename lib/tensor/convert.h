// Conversions between float32 and every other element type, over whole spans.
//
// Floats round to nearest, ties to even (IEEE 754); subnormals are kept. A
// value too large for the target becomes its infinity, or its NaN where it has
// none (F8_E4M3 and the FNUZ forms), as in PyTorch. NaN stays NaN. F8_E8M0 has
// powers of two alone: the nearest, a tie going up, the sign dropped; infinity
// and NaN become its NaN. Integers truncate towards zero, saturate, and take
// NaN as 0. Anything but 0 is true.
//
// Formats: IEEE 754-2019; OCP 8-bit floating point (2023-06), OCP microscaling
// (2023-09) for F8_E8M0 and F4; arXiv 2206.02915 for the FNUZ forms.

#ifndef LIB_TENSOR_CONVERT_H_
#define LIB_TENSOR_CONVERT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/host_tensor.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

float F16ToFloat(uint16_t bits);
uint16_t FloatToF16(float value);
float BF16ToFloat(uint16_t bits);
uint16_t FloatToBF16(float value);

// Writes the elements of `source` (of type `dtype`, at any alignment) to
// `target`. Wider types (F64, I32, U32, I64, U64) round to nearest even. F4
// holds two elements a byte, the low half first. InvalidArgument when the sizes
// disagree; Unimplemented for C64 and for F6, whose packing the format leaves
// open.
absl::Status ConvertToFloat(DType dtype, absl::Span<const std::byte> source,
                            absl::Span<float> target);

// Writes `source` as elements of `dtype` to `target`. Errors as above, and
// Unimplemented for F4.
absl::Status ConvertFromFloat(absl::Span<const float> source, DType dtype,
                              absl::Span<std::byte> target);

// Returns `view` as a tensor of `dtype`, rounded once: F64 to BF16 does not
// round to float32 on its way. A copy when the type is the same. Unimplemented
// between two types that float32 cannot carry (I64 to F64).
absl::StatusOr<HostTensor> ConvertTensor(const TensorView& view, DType dtype);

}  // namespace firstframe

#endif  // LIB_TENSOR_CONVERT_H_
