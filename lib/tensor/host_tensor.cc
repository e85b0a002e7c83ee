#include "lib/tensor/host_tensor.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <cstring>
#include <optional>

#include "lib/base/checked_math.h"

namespace firstframe {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, an AVX-512 vector
constexpr size_t kHugePage = size_t{2} << 20;

std::string Describe(DType dtype, const Shape& shape) {
  return absl::StrCat(DTypeName(dtype), " ", ShapeToString(shape));
}

}  // namespace

void HostTensor::Free::operator()(std::byte* data) const { ::free(data); }

absl::StatusOr<HostTensor> HostTensor::Create(DType dtype, Shape shape,
                                              Fill fill) {
  const std::optional<int64_t> size = CheckedSizeBytes(dtype, shape);
  if (!size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a tensor of ", Describe(dtype, shape), " has no size in whole bytes"));
  }
  HostTensor tensor;
  if (*size > 0) {
    const size_t wanted = static_cast<size_t>(*size);
    const size_t alignment = wanted >= 2 * kHugePage ? kHugePage : kAlignment;
    const std::optional<size_t> padded = CheckedAlignUp(wanted, alignment);
    void* data =
        padded.has_value() ? ::aligned_alloc(alignment, *padded) : nullptr;
    if (data == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("no memory for ", *size,
                                                       " bytes of a tensor of ",
                                                       Describe(dtype, shape)));
    }
    if (alignment == kHugePage) (void)::madvise(data, *padded, MADV_HUGEPAGE);
    if (fill == Fill::kZero) std::memset(data, 0, wanted);
    tensor.data_.reset(static_cast<std::byte*>(data));
  }
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.size_bytes_ = *size;
  return tensor;
}

absl::StatusOr<HostTensor> HostTensor::CopyOf(const TensorView& view) {
  absl::StatusOr<HostTensor> tensor =
      Create(view.dtype, view.shape, Fill::kNone);
  if (!tensor.ok()) return tensor;
  if (view.bytes.size() != static_cast<size_t>(tensor->size_bytes())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a view of ", Describe(view.dtype, view.shape), " holds ",
        view.bytes.size(), " bytes, expected ", tensor->size_bytes()));
  }
  if (!view.bytes.empty()) {
    std::memcpy(tensor->data_.get(), view.bytes.data(), view.bytes.size());
  }
  return tensor;
}

absl::Status HostTensor::Reshape(Shape shape) {
  const std::optional<int64_t> count = CheckedNumElements(shape);
  if (count != num_elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot reshape ", ShapeToString(shape_), " to ",
                     ShapeToString(shape), ": ", num_elements(), " elements"));
  }
  shape_ = std::move(shape);
  return absl::OkStatus();
}

}  // namespace firstframe
