#include "lib/wan_vae/synthetic.h"

#include <cmath>

#include "absl/strings/match.h"

namespace firstframe {
namespace {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

uint64_t Fnv1a64(absl::string_view text) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001B3;
  return hash;
}

// Uniform on [-1, 1), a multiple of 2^-23.
inline float Uniform(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z = z ^ (z >> 31);
  // 24 bits: through int32, which converts in one instruction.
  return static_cast<float>(static_cast<int32_t>(z >> 40)) * 0x1p-23f - 1.0f;
}

// offset + scale * u. The BUILD file forbids fused multiply-add here.
void Fill(uint64_t seed, int64_t first, float scale, float offset,
          absl::Span<float> values) {
  uint64_t state = seed + (static_cast<uint64_t>(first) + 1) * kStep;
  float* const out = values.data();
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) {
    out[i] = offset + scale * Uniform(state + i * kStep);
  }
}

}  // namespace

void FillSynthetic(absl::string_view name, absl::Span<const int64_t> shape,
                   int64_t first, absl::Span<float> values) {
  float scale = static_cast<float>(std::sqrt(3.0));
  float offset = 0.0f;
  if (absl::EndsWith(name, ".gamma")) {
    scale = 0.1f;
    offset = 1.0f;
  } else if (absl::EndsWith(name, ".bias")) {
    scale = 0.1f;
  } else if (absl::EndsWith(name, ".weight")) {
    double fan_in = 1.0;
    for (size_t i = 1; i < shape.size(); ++i)
      fan_in *= static_cast<double>(shape[i]);
    scale = static_cast<float>(1.0 / std::sqrt(fan_in));
  }
  Fill(Fnv1a64(name), first, scale, offset, values);
}

}  // namespace firstframe
