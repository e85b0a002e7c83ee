#include "lib/tensor/dtype.h"

#include "absl/strings/strip.h"

namespace firstframe {
namespace {

constexpr DTypeInfo kTable[kNumDTypes] = {
    {DType::kBool, "BOOL", "bool", "|b1", 8},
    {DType::kF4, "F4", "float4_e2m1fn_x2", "", 4},
    {DType::kF6E2M3, "F6_E2M3", "", "", 6},
    {DType::kF6E3M2, "F6_E3M2", "", "", 6},
    {DType::kU8, "U8", "uint8", "|u1", 8},
    {DType::kI8, "I8", "int8", "|i1", 8},
    {DType::kF8E5M2, "F8_E5M2", "float8_e5m2", "", 8},
    {DType::kF8E4M3, "F8_E4M3", "float8_e4m3fn", "", 8},
    {DType::kF8E8M0, "F8_E8M0", "float8_e8m0fnu", "", 8},
    {DType::kF8E4M3Fnuz, "F8_E4M3FNUZ", "float8_e4m3fnuz", "", 8},
    {DType::kF8E5M2Fnuz, "F8_E5M2FNUZ", "float8_e5m2fnuz", "", 8},
    {DType::kI16, "I16", "int16", "<i2", 16},
    {DType::kU16, "U16", "uint16", "<u2", 16},
    {DType::kF16, "F16", "float16", "<f2", 16},
    {DType::kBF16, "BF16", "bfloat16", "", 16},
    {DType::kI32, "I32", "int32", "<i4", 32},
    {DType::kU32, "U32", "uint32", "<u4", 32},
    {DType::kF32, "F32", "float32", "<f4", 32},
    {DType::kC64, "C64", "complex64", "<c8", 64},
    {DType::kF64, "F64", "float64", "<f8", 64},
    {DType::kI64, "I64", "int64", "<i8", 64},
    {DType::kU64, "U64", "uint64", "<u8", 64},
};

}  // namespace

absl::Span<const DTypeInfo> AllDTypes() { return kTable; }

const DTypeInfo& GetDTypeInfo(DType dtype) {
  return kTable[static_cast<int>(dtype)];
}

std::optional<DType> ParseDType(absl::string_view name) {
  for (const DTypeInfo& info : kTable) {
    if (info.name == name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<DType> ParseTorchDType(absl::string_view name) {
  name = absl::StripPrefix(name, "torch.");
  if (name.empty()) return std::nullopt;
  for (const DTypeInfo& info : kTable) {
    if (info.torch_name == name) return info.dtype;
  }
  return std::nullopt;
}

}  // namespace firstframe
