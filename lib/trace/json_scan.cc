#include "lib/trace/json_scan.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// Whether a quote at `p - 1` ends a string: a separator follows, or the text.
// Returns -1 when that cannot be told yet.
int EndsString(const char* p, const char* end) {
  p = SkipJsonSpace(p, end);
  if (p == end) return -1;
  return *p == ',' || *p == '}' || *p == ']' || *p == ':' ? 1 : 0;
}

bool IsPlainWord(absl::string_view word) {
  return word == "true" || word == "false" || word == "null";
}

}  // namespace

const char* FindStringEnd(const char* p, const char* end,
                          JsonOddities* oddities) {
  for (;;) {
    p = FindStringBreak(p, end, &oddities->non_ascii);
    if (p == end) return nullptr;
    if (*p == '\\') {
      oddities->backslash = true;
      p += 2;
      if (p > end) return nullptr;
      continue;
    }
    if (*p != '"') {
      oddities->control_character = true;
      ++p;
      continue;
    }
    // Nearly always a separator follows at once.
    const char next = p + 1 < end ? p[1] : '\0';
    if (next == ',' || next == ':' || next == '}' || next == ']') return p;
    const int ends = EndsString(p + 1, end);
    if (ends != 0) return ends > 0 ? p : nullptr;
    oddities->inner_quote = true;
    ++p;
  }
}

const char* SkipJsonContainer(const char* p, const char* end,
                              JsonOddities* oddities) {
  int depth = 0;
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i bit = _mm_set1_epi8(0x20);
  const __m128i open = _mm_set1_epi8('{');
  const __m128i close = _mm_set1_epi8('}');
#endif
  while (p < end) {
#ifdef __SSE2__
    // '[' and '{', ']' and '}' differ in bit 0x20 alone.
    if (end - p >= 16) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i folded = _mm_or_si128(v, bit);
      const __m128i hit =
          _mm_or_si128(_mm_cmpeq_epi8(v, quote),
                       _mm_or_si128(_mm_cmpeq_epi8(folded, open),
                                    _mm_cmpeq_epi8(folded, close)));
      const unsigned mask = _mm_movemask_epi8(hit);
      if (mask == 0) {
        p += 16;
        continue;
      }
      p += __builtin_ctz(mask);
    }
#endif
    const char c = *p++;
    if (c == '"') {
      const char* const closing = FindStringEnd(p, end, oddities);
      if (closing == nullptr) return nullptr;
      p = closing + 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return p;
    }
  }
  return nullptr;
}

const char* SkipJsonValue(const char* p, const char* end,
                          JsonOddities* oddities) {
  if (p == end) return nullptr;
  if (*p == '"') {
    const char* const close = FindStringEnd(p + 1, end, oddities);
    return close == nullptr ? nullptr : close + 1;
  }
  if (*p == '{' || *p == '[') return SkipJsonContainer(p, end, oddities);
  const char* const after = SkipJsonToken(p, end);
  if (after == end) return nullptr;
  const char c = *p;
  const bool is_number = absl::ascii_isdigit(c) ||
                         (c == '-' && p + 1 < end && absl::ascii_isdigit(p[1]));
  if (!is_number && !IsPlainWord(absl::string_view(p, after - p))) {
    oddities->bare_word = true;
  }
  return after;
}

std::string DecodeJsonString(absl::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  const auto hex4 = [&](size_t at) -> int {
    if (at + 4 > raw.size()) return -1;
    int value = 0;
    for (size_t i = at; i < at + 4; ++i) {
      if (!absl::ascii_isxdigit(raw[i])) return -1;
      const char c = absl::ascii_tolower(raw[i]);
      value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  };
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text.push_back(raw[i]);
      continue;
    }
    const char c = raw[++i];
    switch (c) {
      case '"':
      case '\\':
      case '/':
        text.push_back(c);
        break;
      case 'n':
        text.push_back('\n');
        break;
      case 't':
        text.push_back('\t');
        break;
      case 'r':
        text.push_back('\r');
        break;
      case 'b':
        text.push_back('\b');
        break;
      case 'f':
        text.push_back('\f');
        break;
      case 'u': {
        int code = hex4(i + 1);
        if (code < 0) {
          text += "\\u";
          break;
        }
        i += 4;
        if (code >= 0xD800 && code < 0xDC00 && i + 2 < raw.size() &&
            raw[i + 1] == '\\' && raw[i + 2] == 'u') {
          const int low = hex4(i + 3);
          if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
          }
        }
        // A surrogate on its own has no UTF-8 form.
        AppendUtf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, &text);
        break;
      }
      default:
        text.push_back('\\');
        text.push_back(c);
    }
  }
  return text;
}

bool ParseMicroseconds(absl::string_view text, int64_t* nanoseconds) {
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  int64_t value = 0;
  const char* const digits = p;
  // 15 digits of microseconds are 31 years; more go the slow way below.
  while (p < end && absl::ascii_isdigit(*p) && p - digits < 15) {
    value = value * 10 + (*p++ - '0');
  }
  if (p > digits) {
    value *= 1000;
    if (p < end && *p == '.') {
      ++p;
      int64_t unit = 100;
      while (p < end && absl::ascii_isdigit(*p)) {
        value += (*p++ - '0') * unit;
        unit /= 10;
      }
    }
    if (p == end) {
      *nanoseconds = negative ? -value : value;
      return true;
    }
  }
  // SimpleAtod allows space around the number.
  if (text.find_first_of(" \t\r\n") != absl::string_view::npos) return false;
  double wide = 0;
  if (!absl::SimpleAtod(text, &wide) || !std::isfinite(wide)) return false;
  // Largest double below 2^63.
  if (std::abs(wide) > 9.2233720368547e15) return false;
  if (text.find_first_of(".eE") == absl::string_view::npos) {
    int64_t whole = 0;
    if (absl::SimpleAtoi(text, &whole)) {
      *nanoseconds = whole * 1000;
      return true;
    }
  }
  *nanoseconds = static_cast<int64_t>(std::llround(wide * 1000.0));
  return true;
}

std::string FormatMicroseconds(int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const uint64_t magnitude =
      negative ? 0 - static_cast<uint64_t>(nanoseconds) : nanoseconds;
  const uint64_t fraction = magnitude % 1000;
  return absl::StrCat(negative ? "-" : "", magnitude / 1000, ".",
                      absl::Dec(fraction, absl::kZeroPad3));
}

absl::string_view FindJsonValue(absl::string_view text, absl::string_view key) {
  absl::string_view found;
  JsonOddities ignored;
  VisitJsonObject(text, &ignored,
                  [&](absl::string_view name, absl::string_view value) {
                    if (name != key) return true;
                    found = value;
                    return false;
                  });
  return found;
}

}  // namespace firstframe
