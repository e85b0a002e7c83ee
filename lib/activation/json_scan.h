// Steps over JSON in place, without building anything.
//
// Strict RFC 8259, and beyond it only what Python's json module writes and
// reads: NaN, Infinity and -Infinity (also as nan, inf, -inf). Bytes from 0x80
// on are taken as they are in strings.
//
// Every function takes a range [p, end) and returns the position behind what it
// read, or nullptr when that is not there.

#ifndef LIB_ACTIVATION_JSON_SCAN_H_
#define LIB_ACTIVATION_JSON_SCAN_H_

#include <string>

#include "absl/strings/string_view.h"

namespace firstframe::json_scan {

// Deeper nesting is refused; records have two levels.
inline constexpr int kMaxDepth = 200;

inline const char* SkipSpace(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) ++p;
  return p;
}

// `p` is at the opening quote.
const char* SkipString(const char* p, const char* end);

// A number, or one of the non-finite tokens.
const char* SkipNumber(const char* p, const char* end);

// Any value; white space before it is skipped.
const char* SkipValue(const char* p, const char* end, int depth = 0);

// Decodes what stands between the quotes of a string that SkipString accepted.
// A lone surrogate becomes its three bytes, so that different names stay
// different.
std::string DecodeString(absl::string_view raw);

}  // namespace firstframe::json_scan

#endif  // LIB_ACTIVATION_JSON_SCAN_H_
