#include "lib/tensor/strides.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace firstframe {

bool IsRowMajor(absl::Span<const int64_t> shape,
                absl::Span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

bool IsDense(absl::Span<const int64_t> shape,
             absl::Span<const int64_t> strides) {
  std::vector<std::pair<int64_t, int64_t>> dimensions;  // stride, size
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) dimensions.emplace_back(strides[i], shape[i]);
  }
  std::sort(dimensions.begin(), dimensions.end());
  int64_t expected = 1;
  for (const auto& [stride, size] : dimensions) {
    if (stride != expected) return false;
    expected *= size;
  }
  return true;
}

StridedShape Coalesce(absl::Span<const int64_t> shape,
                      absl::Span<const int64_t> strides) {
  StridedShape result;  // innermost first, until the end
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!result.shape.empty() &&
        strides[i] == result.strides.back() * result.shape.back()) {
      result.shape.back() *= shape[i];
    } else {
      result.shape.push_back(shape[i]);
      result.strides.push_back(strides[i]);
    }
  }
  std::reverse(result.shape.begin(), result.shape.end());
  std::reverse(result.strides.begin(), result.strides.end());
  return result;
}

int64_t Widen(int64_t element_bytes, uintptr_t addresses,
              StridedShape& layout) {
  constexpr int64_t kWidest = 16;
  if (layout.shape.empty() || layout.strides.back() != 1) return element_bytes;
  const size_t inner = layout.shape.size() - 1;
  while (element_bytes < kWidest && layout.shape[inner] % 2 == 0 &&
         addresses % (2 * element_bytes) == 0 &&
         std::all_of(layout.strides.begin(), layout.strides.begin() + inner,
                     [](int64_t stride) { return stride % 2 == 0; })) {
    element_bytes *= 2;
    layout.shape[inner] /= 2;
    for (size_t d = 0; d < inner; ++d) layout.strides[d] /= 2;
  }
  return element_bytes;
}

void GatherRowMajor(const std::byte* data, absl::Span<const int64_t> shape,
                    absl::Span<const int64_t> strides, int64_t element_bytes,
                    std::byte* to) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;  // in elements
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * element_bytes, data + offset * element_bytes,
                element_bytes);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace firstframe
