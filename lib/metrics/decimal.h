// Decimal text to double, correctly rounded, made for the 16 and 17 digits that
// Python prints.
//
// The digits of a number are found with one comparison of 32 bytes and read
// eight at a time from their end backwards, without a branch on their count: in
// records of measurements that count is what a processor cannot predict. The
// scaling is that of Lemire, "Number parsing at a gigabyte per second" (2021).

#ifndef LIB_METRICS_DECIMAL_H_
#define LIB_METRICS_DECIMAL_H_

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace firstframe {
namespace internal {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

inline uint64_t LoadEight(const char* p) {
  uint64_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return bytes;
}

// Bit i is set where p[i] is no digit.
inline uint32_t NonDigits32(const char* p) {
#ifdef __SSE2__
  const auto non_digits = [](const char* at) {
    const __m128i values =
        _mm_sub_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
                     _mm_set1_epi8('0'));
    const __m128i is_over_nine =
        _mm_cmpeq_epi8(_mm_max_epu8(values, _mm_set1_epi8(10)), values);
    return static_cast<uint32_t>(_mm_movemask_epi8(is_over_nine));
  };
  return non_digits(p) | (non_digits(p + 16) << 16);
#else
  uint32_t mask = 0;
  for (int i = 0; i < 32; ++i) {
    mask |= static_cast<uint32_t>(!IsDigit(p[i])) << i;
  }
  return mask;
#endif
}

// The number that eight digits write, the first in the lowest byte.
inline uint32_t EightDigits(uint64_t bytes) {
  bytes -= 0x3030303030303030;
  bytes = bytes * 10 + (bytes >> 8);
  constexpr uint64_t kMask = 0x000000FF000000FF;
  return static_cast<uint32_t>(((bytes & kMask) * 0x000F424000000064 +
                                ((bytes >> 16) & kMask) * 0x0000271000000001) >>
                               32);
}

// Of eight bytes, those that the last `count` digits take: none for a negative
// count, all for eight and more. Indexed by count + 16.
inline constexpr std::array<uint64_t, 41> kLastBytes = [] {
  std::array<uint64_t, 41> masks{};
  for (int count = -16; count <= 24; ++count) {
    uint64_t mask = ~uint64_t{0};
    if (count <= 0) mask = 0;
    if (count > 0 && count < 8) mask <<= 8 * (8 - count);
    masks[static_cast<size_t>(count + 16)] = mask;
  }
  return masks;
}();

// The number that the last min(count, 8) characters before `end` write; 0 when
// count is not positive. Reads eight bytes.
inline uint64_t LastDigits(const char* end, int64_t count) {
  const uint64_t mask = kLastBytes[static_cast<size_t>(count + 16)];
  return EightDigits((LoadEight(end - 8) & mask) |
                     (0x3030303030303030 & ~mask));
}

// The same for 16 characters and a count of 0 to 16. Reads 16 bytes.
inline uint64_t LastDigits16(const char* end, int64_t count) {
#ifdef __SSE2__
  alignas(32) static constexpr std::array<uint8_t, 32> kMask = [] {
    std::array<uint8_t, 32> mask{};
    for (size_t i = 16; i < 32; ++i) mask[i] = 0xFF;
    return mask;
  }();
  const auto load = [](const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  // Digits as bytes, pairs as 16 bits, fours and eights as 32 bits.
  const __m128i digits =
      _mm_and_si128(_mm_sub_epi8(load(end - 16), _mm_set1_epi8('0')),
                    load(kMask.data() + count));
  const __m128i pairs =
      _mm_add_epi16(_mm_mullo_epi16(_mm_and_si128(digits, _mm_set1_epi16(0xFF)),
                                    _mm_set1_epi16(10)),
                    _mm_srli_epi16(digits, 8));
  const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(100 | (1 << 16)));
  const __m128i eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours),
                                        _mm_set1_epi32(10000 | (1 << 16)));
  const auto both = static_cast<uint64_t>(_mm_cvtsi128_si64(eights));
  return (both & 0xFFFFFFFF) * 100000000 + (both >> 32);
#else
  return LastDigits(end - 8, count - 8) * 100000000 + LastDigits(end, count);
#endif
}

// 10^0 to 10^19.
inline constexpr std::array<uint64_t, 20> kPowersOfTen = [] {
  std::array<uint64_t, 20> powers{};
  uint64_t power = 1;
  for (uint64_t& entry : powers) {
    entry = power;
    power *= 10;
  }
  return powers;
}();

// 5^q for q from -27 to 27 as 128-bit fractions with the top bit set: rounded
// up where q is negative, exact elsewhere (5^27 < 2^63).
inline constexpr int kMaxPower = 27;
struct PowerOfFive {
  uint64_t high;
  uint64_t low;
};
inline constexpr std::array<PowerOfFive, 2 * kMaxPower + 1> kPowersOfFive = [] {
  std::array<PowerOfFive, 2 * kMaxPower + 1> powers{};
  uint64_t power = 1;
  for (int q = 0; q <= kMaxPower; ++q, power *= 5) {
    powers[static_cast<size_t>(kMaxPower + q)] = {
        power << std::countl_zero(power), 0};
    if (q == 0) continue;
    // 2^(bits + 127) / 5^q, digit by binary digit.
    const int bits = 64 - std::countl_zero(power);
    unsigned __int128 quotient = 0;
    uint64_t remainder = 1;
    for (int i = 0; i < bits + 127; ++i) {
      remainder *= 2;
      quotient <<= 1;
      if (remainder >= power) {
        remainder -= power;
        quotient |= 1;
      }
    }
    quotient += 1;
    powers[static_cast<size_t>(kMaxPower - q)] = {
        static_cast<uint64_t>(quotient >> 64), static_cast<uint64_t>(quotient)};
  }
  return powers;
}();

// significand x 10^q, correctly rounded, for q in -kMaxPower to kMaxPower.
inline double ScaleByTen(uint64_t significand, int q) {
  if (significand == 0) return 0;
  const int zeros = std::countl_zero(significand);
  significand <<= zeros;
  const PowerOfFive& power = kPowersOfFive[static_cast<size_t>(q + kMaxPower)];
  const auto product = static_cast<unsigned __int128>(significand) * power.high;
  auto high = static_cast<uint64_t>(product >> 64);
  auto low = static_cast<uint64_t>(product);
  // The low half of the power matters only when a carry could reach the bits
  // that are kept.
  if ((high & 0x1FF) == 0x1FF) {
    const auto more = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(significand) * power.low) >> 64);
    low += more;
    if (low < more) ++high;
  }
  const int top = static_cast<int>(high >> 63);
  const int shift = top + 9;  // leaves 54 bits: 53 and one to round by
  uint64_t mantissa = high >> shift;
  // Halfway between two doubles, exactly: only small powers can be.
  if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 &&
      mantissa << shift == high) {
    mantissa &= ~uint64_t{1};
  }
  mantissa = (mantissa + (mantissa & 1)) >> 1;
  int exponent = ((217706 * q) >> 16) + 63 + top - zeros + 1023;
  if (mantissa >> 53 != 0) {
    mantissa = uint64_t{1} << 52;
    ++exponent;
  }
  const uint64_t bits = (mantissa & ((uint64_t{1} << 52) - 1)) |
                        (static_cast<uint64_t>(exponent) << 52);
  return std::bit_cast<double>(bits);
}

// The exponent behind 'e', or null when there is none. Clamped to +-9999.
inline const char* ReadExponent(const char* p, int& exponent) {
  const bool is_negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const digits = p;
  int value = 0;
  while (IsDigit(*p)) {
    if (value < 1000) value = value * 10 + (*p - '0');
    ++p;
  }
  if (p == digits) return nullptr;
  exponent += is_negative ? -value : value;
  return p;
}

// The end of the number at `p`, or null when JSON has no such number.
inline const char* SkipJsonNumber(const char* p) {
  if (*p == '-') ++p;
  const char* const digits = p;
  while (IsDigit(*p)) ++p;
  if (p == digits || (*digits == '0' && p - digits > 1)) return nullptr;
  if (*p == '.') {
    const char* const fraction = ++p;
    while (IsDigit(*p)) ++p;
    if (p == fraction) return nullptr;
  }
  int ignored = 0;
  return *p == 'e' || *p == 'E' ? ReadExponent(p + 1, ignored) : p;
}

// Numbers of any length.
inline const char* ParseLongJsonNumber(const char* begin, double& value) {
  const char* const end = SkipJsonNumber(begin);
  if (end == nullptr) return nullptr;
  const auto [stopped, code] = std::from_chars(begin, end, value);
  return code == std::errc() && stopped == end ? end : nullptr;
}

}  // namespace internal

// Bytes that must be readable behind the start of a number.
inline constexpr int kNumberPadding = 40;

// A number is read from its end in words, which may begin so much before it.
// Where that is not readable, a slower way is taken.
inline constexpr int kNumberLookBack = 24;

// Parses a JSON number at `p` into `value` and returns its end, or null when
// there is none or it is not finite. Bytes from `readable` on may be read, and
// kNumberPadding from `p` on, of which one ends the number.
inline const char* ParseJsonNumber(const char* readable, const char* p,
                                   double& value) {
  using internal::LastDigits;
  constexpr int kMaxDigits = 19;  // fit 64 bits
  const char* const begin = p;
  if (p - readable < kNumberLookBack) {
    return internal::ParseLongJsonNumber(begin, value);
  }
  const bool is_negative = *p == '-';
  p += is_negative;
  const uint32_t others = internal::NonDigits32(p);
  const int whole = std::countr_zero(others);
  if (whole == 0 || (*p == '0' && whole > 1)) return nullptr;
  if (whole > 16) return internal::ParseLongJsonNumber(begin, value);
  p += whole;
  uint64_t significand = whole == 1 ? static_cast<uint64_t>(p[-1] - '0')
                                    : internal::LastDigits16(p, whole);
  int exponent = 0;
  if (*p == '.') {
    const int count = std::countr_zero(others >> (whole + 1));
    if (count == 0) return nullptr;
    if (count > kMaxDigits ||
        (significand != 0 && whole + count > kMaxDigits)) {
      return internal::ParseLongJsonNumber(begin, value);
    }
    p += 1 + count;
    const uint64_t fraction =
        LastDigits(p - 16, count - 16) * 10000000000000000 +
        internal::LastDigits16(p, std::min(count, 16));
    significand =
        significand * internal::kPowersOfTen[static_cast<size_t>(count)] +
        fraction;
    exponent = -count;
  }
  if (*p == 'e' || *p == 'E') {
    p = internal::ReadExponent(p + 1, exponent);
    if (p == nullptr) return nullptr;
  }
  if (exponent < -internal::kMaxPower || exponent > internal::kMaxPower) {
    return internal::ParseLongJsonNumber(begin, value);
  }
  const double result = internal::ScaleByTen(significand, exponent);
  value = is_negative ? -result : result;
  return p;
}

// Parses a plain integer of 1 to 16 digits, or returns null, also where a
// number goes on as a decimal. Readable bytes as above.
inline const char* ParseJsonInteger(const char* readable, const char* p,
                                    int64_t& value) {
  if (p - readable < kNumberLookBack) return nullptr;
  const int count = std::countr_zero(internal::NonDigits32(p));
  if (count == 0 || count > 16 || (*p == '0' && count > 1)) return nullptr;
  p += count;
  if (*p == '.' || *p == 'e' || *p == 'E') return nullptr;
  value = count == 1 ? p[-1] - '0'
                     : static_cast<int64_t>(internal::LastDigits16(p, count));
  return p;
}

}  // namespace firstframe

#endif  // LIB_METRICS_DECIMAL_H_
