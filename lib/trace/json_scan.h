// Steps over JSON text at memory speed, and over what people's tracers write
// instead of JSON.
//
// Each function takes the position and the end of what is in memory, and
// returns the position after what it stepped over, or null when the text ended
// first. They accept more than JSON: control characters and line ends inside
// strings, a quote inside a string that no separator follows, NaN, Infinity,
// N/A, commas too many. What they accepted is noted in JsonOddities.

#ifndef LIB_TRACE_JSON_SCAN_H_
#define LIB_TRACE_JSON_SCAN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace firstframe {

struct JsonOddities {
  bool control_character = false;  // below 0x20 inside a string
  bool non_ascii = false;          // above 0x7F inside a string (often fine)
  bool backslash = false;          // an escape inside a string (fine)
  bool inner_quote = false;        // a quote inside a string
  bool bare_word = false;          // NaN, Infinity, N/A: not true, false, null
};

inline const char* SkipJsonSpace(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// Returns the first of '"', '\\' and control characters in [p, end), or end.
// Sets *non_ascii when a byte above 0x7F came first.
inline const char* FindStringBreak(const char* p, const char* end,
                                   bool* non_ascii) {
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i slash = _mm_set1_epi8('\\');
  const __m128i control = _mm_set1_epi8(0x1f);
  while (end - p >= 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hit = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
        _mm_cmpeq_epi8(_mm_max_epu8(v, control), control));
    const unsigned mask = _mm_movemask_epi8(hit);
    const unsigned high = _mm_movemask_epi8(v);
    if (mask != 0) {
      const unsigned before = mask & (0u - mask);
      if ((high & (before - 1)) != 0) *non_ascii = true;
      return p + __builtin_ctz(mask);
    }
    if (high != 0) *non_ascii = true;
    p += 16;
  }
#endif
  for (; p < end; ++p) {
    const auto c = static_cast<unsigned char>(*p);
    if (c == '"' || c == '\\' || c < 0x20) return p;
    if (c >= 0x80) *non_ascii = true;
  }
  return p;
}

// `p` is after the opening quote. Returns the position of the closing quote.
const char* FindStringEnd(const char* p, const char* end,
                          JsonOddities* oddities);

// `p` is at the first byte of a value. Returns the position after it.
const char* SkipJsonValue(const char* p, const char* end,
                          JsonOddities* oddities);

// `p` is at '{' or '['. Returns the position after its match.
const char* SkipJsonContainer(const char* p, const char* end,
                              JsonOddities* oddities);

// Returns the first byte after the bare token (number, word) at `p`, or `end`.
inline const char* SkipJsonToken(const char* p, const char* end) {
  while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' &&
         *p != '\n' && *p != '\r' && *p != '\t' && *p != ':' && *p != '"') {
    ++p;
  }
  return p;
}

// Decodes the escapes of a JSON string (without its quotes). A backslash that
// starts no escape stands for itself (Windows paths).
std::string DecodeJsonString(absl::string_view raw);

// Reads a decimal number of microseconds as whole nanoseconds, exactly, with
// digits beyond the third decimal cut off; also with an exponent. Returns false
// when `text` is not a number, or out of int64's range.
bool ParseMicroseconds(absl::string_view text, int64_t* nanoseconds);

// Writes nanoseconds as microseconds with three decimals, as Kineto does.
std::string FormatMicroseconds(int64_t nanoseconds);

// Calls `visit(key, value)` for each pair of the object `text` (braces
// included), in order; values are raw text, strings with their quotes. Stops
// when `visit` returns false, or at a malformed pair. Returns false in the
// latter case.
template <typename Visitor>
bool VisitJsonObject(absl::string_view text, JsonOddities* oddities,
                     Visitor&& visit) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if (text.empty() || *p != '{') return false;
  ++p;
  for (;;) {
    p = SkipJsonSpace(p, end);
    if (p == end) return false;
    if (*p == '}') return true;
    if (*p == ',') {
      ++p;
      continue;
    }
    absl::string_view key;
    if (*p == '"') {
      const char* const close = FindStringEnd(p + 1, end, oddities);
      if (close == nullptr) return false;
      key = absl::string_view(p + 1, close - p - 1);
      p = close + 1;
    } else {
      const char* const after = SkipJsonToken(p, end);
      if (after == p) return false;
      key = absl::string_view(p, after - p);
      p = after;
      if (p < end && *p == '"') ++p;  // the opening quote was missing
    }
    p = SkipJsonSpace(p, end);
    if (p == end || *p != ':') return false;
    p = SkipJsonSpace(p + 1, end);
    if (p == end) return false;
    const char* const after = SkipJsonValue(p, end, oddities);
    if (after == nullptr || after == p) return false;
    if (!visit(key, absl::string_view(p, after - p))) return true;
    p = after;
  }
}

// Returns the raw value of `key` in the object `text`, or an empty view.
absl::string_view FindJsonValue(absl::string_view text, absl::string_view key);

// Returns `raw` without its quotes, if it has them.
inline absl::string_view UnquoteJson(absl::string_view raw) {
  if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"') {
    return raw.substr(1, raw.size() - 2);
  }
  return raw;
}

}  // namespace firstframe

#endif  // LIB_TRACE_JSON_SCAN_H_
