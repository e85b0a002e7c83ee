// A tensor that owns its memory: dense, row-major, little-endian, on the host.

#ifndef LIB_TENSOR_HOST_TENSOR_H_
#define LIB_TENSOR_HOST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/base/check.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

// Returns whether elements of `dtype` may be read as T. The 16-bit and 8-bit
// floats, which C++ lacks, are read as uint16_t and uint8_t bit patterns.
template <typename T>
constexpr bool IsElementType(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>;
    case DType::kU8:
    case DType::kF8E5M2:
    case DType::kF8E4M3:
    case DType::kF8E8M0:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
      return std::is_same_v<T, uint8_t>;
    case DType::kI8:
      return std::is_same_v<T, int8_t>;
    case DType::kI16:
      return std::is_same_v<T, int16_t>;
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return std::is_same_v<T, uint16_t>;
    case DType::kI32:
      return std::is_same_v<T, int32_t>;
    case DType::kU32:
      return std::is_same_v<T, uint32_t>;
    case DType::kF32:
      return std::is_same_v<T, float>;
    case DType::kF64:
      return std::is_same_v<T, double>;
    case DType::kI64:
      return std::is_same_v<T, int64_t>;
    case DType::kU64:
      return std::is_same_v<T, uint64_t>;
    default:
      return false;  // kF4, kF6*: packed; kC64: two floats an element
  }
}

// Returns `view`'s elements. FailedPrecondition when T is not the element type
// or when the bytes do not begin at a multiple of alignof(T): copy such a view
// into a HostTensor first.
template <typename T>
absl::StatusOr<absl::Span<const T>> TypedSpan(const TensorView& view) {
  if (!IsElementType<T>(view.dtype)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the tensor is ", DTypeName(view.dtype),
                     ", which is not the type asked for"));
  }
  if (reinterpret_cast<uintptr_t>(view.bytes.data()) % alignof(T) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the tensor's data is not aligned to ", alignof(T), " bytes"));
  }
  return absl::MakeConstSpan(reinterpret_cast<const T*>(view.bytes.data()),
                             view.bytes.size() / sizeof(T));
}

// Movable, not copyable (see CopyOf). Thread-compatible. Data begins at a
// multiple of 64 bytes; tensors of 4 MiB and more begin at a 2 MiB boundary and
// ask for huge pages.
class HostTensor {
 public:
  enum class Fill {
    kZero,
    kNone,  // for data that is written whole straight after
  };

  // An F32 tensor of shape [0].
  HostTensor() = default;

  // InvalidArgument when the size of `shape` overflows or does not fill whole
  // bytes; ResourceExhausted when there is no memory for it.
  static absl::StatusOr<HostTensor> Create(DType dtype, Shape shape,
                                           Fill fill = Fill::kZero);

  // Copies `view`, which must hold exactly the bytes of its dtype and shape
  // (else InvalidArgument).
  static absl::StatusOr<HostTensor> CopyOf(const TensorView& view);

  // A moved-from tensor is an empty one.
  HostTensor(HostTensor&& other) noexcept { *this = std::move(other); }
  HostTensor& operator=(HostTensor&& other) noexcept {
    dtype_ = std::exchange(other.dtype_, DType::kF32);
    shape_ = std::exchange(other.shape_, Shape{0});
    size_bytes_ = std::exchange(other.size_bytes_, 0);
    data_ = std::move(other.data_);
    return *this;
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size_bytes() const { return size_bytes_; }
  int64_t num_elements() const { return size_bytes_ * 8 / DTypeBits(dtype_); }

  absl::Span<const std::byte> bytes() const {
    return absl::MakeConstSpan(data_.get(), size_bytes_);
  }
  absl::Span<std::byte> mutable_bytes() {
    return absl::MakeSpan(data_.get(), size_bytes_);
  }

  // Returns the elements; stops the process unless IsElementType<T>(dtype()).
  template <typename T>
  absl::Span<const T> data() const {
    FF_CHECK(IsElementType<T>(dtype_));
    return absl::MakeConstSpan(reinterpret_cast<const T*>(data_.get()),
                               size_bytes_ / sizeof(T));
  }
  template <typename T>
  absl::Span<T> mutable_data() {
    FF_CHECK(IsElementType<T>(dtype_));
    return absl::MakeSpan(reinterpret_cast<T*>(data_.get()),
                          size_bytes_ / sizeof(T));
  }

  // Borrows this tensor; valid until it is moved or destroyed.
  TensorView view() const { return {dtype_, shape_, bytes()}; }

  // Takes another shape of the same number of elements, without a copy.
  // InvalidArgument when the numbers differ.
  absl::Status Reshape(Shape shape);

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  int64_t size_bytes_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace firstframe

#endif  // LIB_TENSOR_HOST_TENSOR_H_
