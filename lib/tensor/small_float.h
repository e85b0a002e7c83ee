// Floats of 8 and 16 bits as bit patterns: their shape as a type, and the two
// conversions that convert.cc does with them. Internal to convert.cc.

#ifndef LIB_TENSOR_SMALL_FLOAT_H_
#define LIB_TENSOR_SMALL_FLOAT_H_

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace firstframe::internal {

// How a small float spends its highest codes.
enum class Special {
  kIeee,        // the highest exponent holds infinity and NaN
  kNanOnly,     // all ones is NaN, no infinity (F8_E4M3)
  kNegZeroNan,  // 0x80 is NaN, no infinity, no minus zero (FNUZ)
};

template <int exponent_bits, int mantissa_bits, int bias_value, Special kind>
struct SmallFloat {
  static constexpr int kExponentBits = exponent_bits;
  static constexpr int kMantissaBits = mantissa_bits;
  static constexpr int kBias = bias_value;
  static constexpr Special kSpecial = kind;
  static constexpr int kBits = 1 + exponent_bits + mantissa_bits;
  using Code = std::conditional_t<(kBits > 8), uint16_t, uint8_t>;
  static constexpr uint32_t kSign = 1u << (kBits - 1);
  static constexpr uint32_t kExponentMask = ((1u << exponent_bits) - 1)
                                            << mantissa_bits;
  static constexpr uint32_t kMagnitudeMask = kSign - 1;
  static constexpr uint32_t kMaxFinite =
      kind == Special::kIeee      ? kExponentMask - 1
      : kind == Special::kNanOnly ? kMagnitudeMask - 1
                                  : kMagnitudeMask;
};

using F16 = SmallFloat<5, 10, 15, Special::kIeee>;
using F8E5M2 = SmallFloat<5, 2, 15, Special::kIeee>;
using F8E4M3 = SmallFloat<4, 3, 7, Special::kNanOnly>;
using F8E4M3Fnuz = SmallFloat<4, 3, 8, Special::kNegZeroNan>;
using F8E5M2Fnuz = SmallFloat<5, 2, 16, Special::kNegZeroNan>;

inline constexpr uint32_t kFloatSign = 0x80000000u;
inline constexpr uint32_t kFloatInfinity = 0x7F800000u;

// Returns the value of `code`. NaN keeps the top bits of its payload.
template <typename F>
constexpr float Decode(uint32_t code) {
  const uint32_t sign = (code & F::kSign) ? kFloatSign : 0;
  const uint32_t magnitude = code & F::kMagnitudeMask;
  if (F::kSpecial == Special::kNegZeroNan && code == F::kSign) {
    return std::bit_cast<float>(0x7FC00000u);
  }
  if (F::kSpecial != Special::kNegZeroNan && magnitude > F::kMaxFinite) {
    const uint32_t mantissa = magnitude & ((1u << F::kMantissaBits) - 1);
    if (F::kSpecial == Special::kIeee && mantissa == 0) {
      return std::bit_cast<float>(sign | kFloatInfinity);
    }
    return std::bit_cast<float>(sign | 0x7FC00000u |
                                (mantissa << (23 - F::kMantissaBits)));
  }
  // Every subnormal of a small float is a normal float32: a whole number of
  // units.
  if (magnitude < (1u << F::kMantissaBits)) {
    constexpr float kUnit = std::bit_cast<float>(
        uint32_t{127 + 1 - F::kBias - F::kMantissaBits} << 23);
    const float value = static_cast<float>(magnitude) * kUnit;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << (23 - F::kMantissaBits)) +
                                      (uint32_t{127 - F::kBias} << 23)));
}

// Returns the code nearest to `value`, ties to even; convert.h has what becomes
// of values that are too large.
template <typename F>
typename F::Code Encode(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits & kFloatSign) ? F::kSign : 0;
  const uint32_t magnitude = bits & ~kFloatSign;
  constexpr bool kFnuz = F::kSpecial == Special::kNegZeroNan;
  constexpr uint32_t kNan =
      F::kSpecial == Special::kIeee
          ? F::kExponentMask | (1u << (F::kMantissaBits - 1))
          : F::kMagnitudeMask;
  if (magnitude > kFloatInfinity) {
    return static_cast<typename F::Code>(kFnuz ? F::kSign : sign | kNan);
  }
  constexpr int kDropped = 23 - F::kMantissaBits;
  constexpr uint32_t kMinNormal = uint32_t{127 + 1 - F::kBias} << 23;
  uint32_t code;
  if (magnitude >= kMinNormal) {
    const uint32_t rounded = magnitude + ((magnitude >> kDropped) & 1) +
                             ((1u << (kDropped - 1)) - 1);
    code =
        (rounded >> kDropped) - (uint32_t{127 - F::kBias} << F::kMantissaBits);
    if (code > F::kMaxFinite) {
      if (kFnuz) return static_cast<typename F::Code>(F::kSign);
      code = F::kSpecial == Special::kIeee ? F::kExponentMask : kNan;
    }
  } else {
    // Adding 2^23 units leaves the number of units, rounded by the processor.
    constexpr uint32_t kMagic =
        uint32_t{127 + 1 - F::kBias - F::kMantissaBits + 23} << 23;
    const float sum =
        std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
    code = std::bit_cast<uint32_t>(sum) - kMagic;
  }
  if (kFnuz && code == 0) return 0;
  return static_cast<typename F::Code>(sign | code);
}

// Powers of two from 2^-127 on; the last code is NaN.
inline float DecodeE8M0(uint8_t code) {
  if (code == 0xFF) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return std::bit_cast<float>(0x00400000u);  // 2^-127
  return std::bit_cast<float>(uint32_t{code} << 23);
}

inline uint8_t EncodeE8M0(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & ~kFloatSign;
  if (magnitude >= kFloatInfinity) return 0xFF;
  if (magnitude < 0x00800000u) return magnitude >= 0x00600000u ? 1 : 0;
  return static_cast<uint8_t>((magnitude + 0x00400000u) >> 23);
}

// The low four bits of `code`: E2M1 of OCP microscaling.
inline float DecodeF4(uint32_t code) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return (code & 8) ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

}  // namespace firstframe::internal

#endif  // LIB_TENSOR_SMALL_FLOAT_H_
