#include "lib/base/byte_size.h"

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

// Returns the factor of `unit` (lower case), or 0.
double UnitFactor(absl::string_view unit) {
  if (unit.empty() || unit == "b") return 1;
  static constexpr absl::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit[0]);
  if (power == absl::string_view::npos) return 0;
  const double exponent = static_cast<double>(power + 1);
  unit.remove_prefix(1);
  if (unit.empty() || unit == "b") return std::pow(1000.0, exponent);
  if (unit == "ib") return std::pow(1024.0, exponent);
  return 0;
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
      "'", text, "', expected a size such as 4096, 64MiB or 3.15GB"));
  size_t digits = 0;
  while (digits < text.size() &&
         (absl::ascii_isdigit(text[digits]) || text[digits] == '.')) {
    ++digits;
  }
  const double factor = UnitFactor(absl::AsciiStrToLower(text.substr(digits)));
  if (digits == 0 || factor == 0) return error;
  // A whole number keeps every digit.
  if (uint64_t whole = 0;
      factor == 1 && absl::SimpleAtoi(text.substr(0, digits), &whole)) {
    return whole >> 63 == 0 ? absl::StatusOr<uint64_t>(whole) : error;
  }
  double number = 0;
  if (!absl::SimpleAtod(text.substr(0, digits), &number)) return error;
  const double bytes = std::round(number * factor);
  if (!(bytes < 0x1p63)) return error;
  return static_cast<uint64_t>(bytes);
}

}  // namespace firstframe
