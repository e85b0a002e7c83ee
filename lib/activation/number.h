// Reads the numbers of trace records fast.

#ifndef LIB_ACTIVATION_NUMBER_H_
#define LIB_ACTIVATION_NUMBER_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace firstframe {

// A number as records hold it: nearly always a float32 that Python widened to
// double and printed with up to 17 digits.
struct ParsedNumber {
  float value = 0;
  // The text is a float32 within 1e-15 of itself; else `value` is only near,
  // and ReadDouble() has the rest.
  bool is_float = true;
};

// Reads a number at `p` and returns the position behind it, or nullptr when
// there is none (leading zeros, a bare point and a plus sign are refused, as
// JSON does). NaN and Infinity tokens are read too. About 10 ns.
const char* ParseNumber(const char* p, const char* end, ParsedNumber* number);

// Returns the double nearest to the number in `text`, which ParseNumber took.
double ReadDouble(absl::string_view text);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_NUMBER_H_
