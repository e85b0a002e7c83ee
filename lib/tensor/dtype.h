// The 22 element types of safetensors, sized in bits.
//
// Source: huggingface/safetensors 0.8, safetensors/src/tensor.rs, read 2026-08.
// Names are safetensors' own and exact in case.

#ifndef LIB_TENSOR_DTYPE_H_
#define LIB_TENSOR_DTYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace firstframe {

enum class DType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

inline constexpr int kNumDTypes = 22;

struct DTypeInfo {
  DType dtype;
  absl::string_view name;        // in safetensors headers: "BF16"
  absl::string_view torch_name;  // "bfloat16"; empty where PyTorch has none
  absl::string_view numpy_name;  // "<f4"; empty where NumPy has none
  int bits;                      // of one element: 4, 6, 8, 16, 32 or 64
};

// Returns the table, indexed by the enumerator's value.
absl::Span<const DTypeInfo> AllDTypes();

const DTypeInfo& GetDTypeInfo(DType dtype);

inline absl::string_view DTypeName(DType dtype) {
  return GetDTypeInfo(dtype).name;
}
inline int DTypeBits(DType dtype) { return GetDTypeInfo(dtype).bits; }

// Returns the type called `name` in safetensors headers, or nothing.
std::optional<DType> ParseDType(absl::string_view name);

// Returns the type called `name` in PyTorch, with or without "torch.".
std::optional<DType> ParseTorchDType(absl::string_view name);

}  // namespace firstframe

#endif  // LIB_TENSOR_DTYPE_H_
