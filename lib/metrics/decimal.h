// Decimal text to double, correctly rounded, several times as fast as
// std::from_chars on the 16 and 17 digits that Python prints.

#ifndef LIB_METRICS_DECIMAL_H_
#define LIB_METRICS_DECIMAL_H_

#include <array>
#include <cfloat>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace firstframe {
namespace internal {

// 10^0 to 10^27, which a 64-bit significand holds exactly (5^27 < 2^63).
inline constexpr int kMaxExactPower = 27;
inline constexpr std::array<long double, kMaxExactPower + 1> kPowersOfTen = [] {
  std::array<long double, kMaxExactPower + 1> powers{};
  long double power = 1;
  for (long double& entry : powers) {
    entry = power;
    power *= 10;
  }
  return powers;
}();

// 10^0 to 10^22, which a double holds exactly.
inline constexpr int kMaxDoublePower = 22;
inline constexpr double kDoublePowers[kMaxDoublePower + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// How many of eight bytes, from the lowest on, are digits.
inline int LeadingDigits(uint64_t bytes) {
  // A byte over 9 after the exclusive or has its top bit set by one of the two
  // terms; a carry out of one disturbs only bytes above it.
  const uint64_t values = bytes ^ 0x3030303030303030;
  const uint64_t others =
      ((values + 0x7676767676767676) | values) & 0x8080808080808080;
  return others == 0 ? 8 : __builtin_ctzll(others) / 8;
}
// The number that eight digits write.
inline uint32_t EightDigits(uint64_t bytes) {
  bytes -= 0x3030303030303030;
  bytes = bytes * 10 + (bytes >> 8);
  constexpr uint64_t kMask = 0x000000FF000000FF;
  return static_cast<uint32_t>(((bytes & kMask) * 0x000F424000000064 +
                                ((bytes >> 16) & kMask) * 0x0000271000000001) >>
                               32);
}

inline constexpr uint64_t kTailScales[8] = {1,     10,     100,     1000,
                                            10000, 100000, 1000000, 10000000};

// Reads digits from `p` into `value`; wraps past 19 digits. Eight readable
// bytes must follow the number. Returns the end.
inline const char* ReadDigits(const char* p, uint64_t& value) {
  while (true) {
    uint64_t bytes;
    std::memcpy(&bytes, p, sizeof bytes);
    const int count = LeadingDigits(bytes);
    p += count;
    if (count == 0) return p;
    if (count == 8) {
      value = value * 100000000 + EightDigits(bytes);
      continue;
    }
    // Right-aligned behind zeros.
    bytes = (bytes << (64 - 8 * count)) | (0x3030303030303030 >> (8 * count));
    value = value * kTailScales[count] + EightDigits(bytes);
    return p;
  }
}

}  // namespace internal

// Parses a JSON number at `begin` into `value` and returns its end, or null
// when there is none or it is not finite. At least eight readable bytes, the
// first of which continues no number, must follow it. Correctly rounded: a
// 64-bit quotient rounded once more is right unless it lies halfway between two
// doubles, and then std::from_chars decides.
inline const char* ParseJsonNumber(const char* begin, double& value) {
  const char* p = begin;
  const bool is_negative = *p == '-';
  if (is_negative) ++p;
  const char* const digits = p;
  uint64_t significand = 0;
  p = internal::ReadDigits(p, significand);
  if (p == digits || (*digits == '0' && p - digits > 1)) return nullptr;
  int64_t exponent = 0;
  int64_t count = p - digits;
  if (*p == '.') {
    const char* const fraction = ++p;
    p = internal::ReadDigits(p, significand);
    if (p == fraction) return nullptr;
    exponent = fraction - p;
    count -= exponent;
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool is_below_one = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    const char* const power = p;
    uint64_t scale = 0;
    p = internal::ReadDigits(p, scale);
    if (p == power) return nullptr;
    if (p - power > 4 || scale > 9999) scale = 9999;
    exponent += is_below_one ? -static_cast<int64_t>(scale)
                             : static_cast<int64_t>(scale);
  }
  // Both exact, so one operation rounds once (Clinger, 1990).
  if (count <= 19 && significand >> 53 == 0 &&
      exponent >= -internal::kMaxDoublePower &&
      exponent <= internal::kMaxDoublePower) {
    const auto exact = static_cast<double>(static_cast<int64_t>(significand));
    const double result = exponent < 0
                              ? exact / internal::kDoublePowers[-exponent]
                              : exact * internal::kDoublePowers[exponent];
    value = is_negative ? -result : result;
    return p;
  }
#if LDBL_MANT_DIG == 64
  if (count <= 19 && exponent >= -internal::kMaxExactPower &&
      exponent <= internal::kMaxExactPower) {
    const auto exact = static_cast<long double>(significand);
    const long double rounded = exponent < 0
                                    ? exact / internal::kPowersOfTen[-exponent]
                                    : exact * internal::kPowersOfTen[exponent];
    uint64_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    constexpr uint64_t kLowBits = 0x7FF;
    constexpr uint64_t kHalfway = 0x400;
    if ((bits & kLowBits) != kHalfway) {
      const auto result = static_cast<double>(rounded);
      value = is_negative ? -result : result;
      return p;
    }
  }
#endif
  const auto [end, code] = std::from_chars(begin, p, value);
  return code == std::errc() && end == p ? p : nullptr;
}

}  // namespace firstframe

#endif  // LIB_METRICS_DECIMAL_H_
