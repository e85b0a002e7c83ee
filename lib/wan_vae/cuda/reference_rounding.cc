#include "lib/wan_vae/cuda/reference_rounding.h"

#include <cstdint>
#include <cstring>

namespace firstframe::cuda::testing {
namespace {

float FromBits(uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}
uint32_t ToBits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(v));
  return bits;
}

// Halves away from zero (conv_hopper.cuh).
float RoundToTf32(float v) {
  return FromBits((ToBits(v) + 0x1000) & 0xFFFFE000);
}

}  // namespace

float RoundToBf16(float v) {
  const uint32_t bits = ToBits(v);
  return FromBits((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000);
}

float RoundOperand(const ConvVariant& v, float value) {
  if (v.kind == ConvKernelKind::kPortable) return value;
  switch (v.mode) {
    case MathMode::kFp32:
      return value;
    case MathMode::kTf32:
      return RoundToTf32(value);
    case MathMode::kBf16:
      return RoundToBf16(value);
  }
  return value;
}

}  // namespace firstframe::cuda::testing
