#include "lib/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/checked_math.h"

namespace firstframe {

std::optional<int64_t> CheckedNumElements(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const std::optional<int64_t> product = CheckedMultiply(count, size);
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

std::optional<int64_t> CheckedSizeBytes(DType dtype,
                                        absl::Span<const int64_t> shape) {
  const std::optional<int64_t> count = CheckedNumElements(shape);
  if (!count) return std::nullopt;
  const std::optional<int64_t> bits =
      CheckedMultiply<int64_t>(*count, DTypeBits(dtype));
  if (!bits || *bits % 8 != 0) return std::nullopt;
  return *bits / 8;
}

std::string ShapeToString(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace firstframe
