#include "lib/activation/number.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "lib/activation/json_scan.h"

namespace firstframe {
namespace {

constexpr int kMaxPower = 60;

struct Powers {
  double up[kMaxPower + 1];
  Powers() {
    for (int i = 0; i <= kMaxPower; ++i) up[i] = std::pow(10.0, i);
  }
};
const Powers kPowers;

uint64_t Load8(const char* p) {
  uint64_t chunk;
  std::memcpy(&chunk, p, 8);
  return chunk;
}

// The high bit of each byte that is no ASCII digit, up to and with the first.
uint64_t NonDigits(uint64_t c) {
  c ^= 0x3030303030303030u;
  return ((c + 0x7676767676767676u) | c) & 0x8080808080808080u;
}
// Eight digits at once (Langdale, "Quickly parsing eight digits", 2018). Zero
// bytes count as zeros.
uint32_t EightDigits(uint64_t c) {
  c = (c & 0x0F0F0F0F0F0F0F0Fu) * 2561 >> 8;
  c = (c & 0x00FF00FF00FF00FFu) * 6553601 >> 16;
  return static_cast<uint32_t>((c & 0x0000FFFF0000FFFFu) * 42949672960001u >>
                               32);
}

constexpr uint64_t kShortPowers[] = {1,     10,     100,     1000,
                                     10000, 100000, 1000000, 10000000};

// Appends the digits at `p` to `*mantissa` and returns the position behind.
// Inlined: it is a third of the time of a comparison.
__attribute__((always_inline)) inline const char* TakeDigits(
    const char* p, const char* end, uint64_t* mantissa) {
  while (end - p >= 8) {
    const uint64_t chunk = Load8(p);
    const uint64_t others = NonDigits(chunk);
    if (others == 0) {
      *mantissa = *mantissa * 100000000 + EightDigits(chunk);
      p += 8;
      continue;
    }
    const int count = __builtin_ctzll(others) / 8;
    if (count == 0) return p;
    // Nothing but the digits, as the last of eight. No loop: how many there are
    // is as good as random.
    *mantissa = *mantissa * kShortPowers[count] +
                EightDigits(chunk << (64 - 8 * count));
    return p + count;
  }
  while (p < end && *p >= '0' && *p <= '9') {
    *mantissa = *mantissa * 10 + static_cast<uint64_t>(*p - '0');
    ++p;
  }
  return p;
}

int LeadingZeros(const char* p, const char* end) {
  int zeros = 0;
  for (; p < end && (*p == '0' || *p == '.'); ++p) zeros += *p == '0';
  return zeros;
}

void SetDouble(double value, ParsedNumber* number) {
  number->value = static_cast<float>(value);
  const double error = std::abs(value - double{number->value});
  number->is_float = error <= 1e-15 * std::abs(value) || std::isnan(value) ||
                     value == double{number->value};
}

// Everything the quick path leaves: tokens, many digits, huge exponents.
const char* ParseSlowly(const char* begin, const char* end,
                        ParsedNumber* number) {
  const char* const behind = json_scan::SkipNumber(begin, end);
  if (behind != nullptr) {
    SetDouble(ReadDouble(absl::string_view(begin, behind - begin)), number);
  }
  return behind;
}

}  // namespace

const char* ParseNumber(const char* const begin, const char* end,
                        ParsedNumber* number) {
  const char* p = begin;
  const bool negative = p < end && *p == '-';
  p += negative;
  const char* const first = p;
  uint64_t mantissa = 0;
  p = TakeDigits(p, end, &mantissa);
  int digits = static_cast<int>(p - first);
  if (digits == 0 || (digits > 1 && *first == '0')) {
    return ParseSlowly(begin, end, number);
  }
  int exponent = 0;
  if (p < end && *p == '.') {
    const char* const fraction = ++p;
    p = TakeDigits(p, end, &mantissa);
    if (p == fraction) return nullptr;
    exponent = -static_cast<int>(p - fraction);
    digits += static_cast<int>(p - fraction);
  }
  if (p < end && (*p | 0x20) == 'e') {
    const char* q = p + 1;
    const bool minus = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+')) ++q;
    uint64_t power = 0;
    const char* const behind = TakeDigits(q, end, &power);
    if (behind == q) return nullptr;
    if (behind - q > 4) return ParseSlowly(begin, end, number);
    exponent += minus ? -static_cast<int>(power) : static_cast<int>(power);
    p = behind;
  }
  // 19 digits fit 64 bits; the zeros of "0.000123..." are none of them.
  if ((digits > 19 && digits - LeadingZeros(first, p) > 19) ||
      exponent > kMaxPower || exponent < -kMaxPower) {
    return ParseSlowly(begin, end, number);
  }
  // Two roundings at most: within 2 units in the last place of a double.
  const double scaled =
      exponent < 0 ? static_cast<double>(mantissa) / kPowers.up[-exponent]
                   : static_cast<double>(mantissa) * kPowers.up[exponent];
  SetDouble(negative ? -scaled : scaled, number);
  return p;
}

double ReadDouble(absl::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) {
    // from_chars leaves the value alone; too large or too small?
    const bool negative = text.front() == '-';
    const size_t e = text.find_first_of("eE");
    const bool tiny = e != absl::string_view::npos && e + 1 < text.size() &&
                      text[e + 1] == '-';
    value = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    return negative ? -value : value;
  }
  if (result.ec != std::errc()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return value;
}

}  // namespace firstframe
