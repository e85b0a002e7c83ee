#include "lib/activation/json_scan.h"

#include <cstdint>
#include <cstring>

#include "lib/base/utf8.h"

namespace firstframe::json_scan {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads the four digits of a \u escape, or returns -1.
int32_t ReadHex4(const char* p, const char* end) {
  if (end - p < 4) return -1;
  int32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = HexValue(p[i]);
    if (digit < 0) return -1;
    code = code << 4 | digit;
  }
  return code;
}

// Matches `word` and that nothing word-like follows ("NaN123" is no NaN).
const char* SkipWord(const char* p, const char* end, absl::string_view word) {
  if (static_cast<size_t>(end - p) < word.size() ||
      std::memcmp(p, word.data(), word.size()) != 0) {
    return nullptr;
  }
  p += word.size();
  if (p < end && (IsDigit(*p) || (*p | 0x20) >= 'a')) {
    const char c = *p | 0x20;
    if (IsDigit(*p) || (c >= 'a' && c <= 'z')) return nullptr;
  }
  return p;
}

const char* SkipNonFinite(const char* p, const char* end) {
  for (const absl::string_view word : {"NaN", "nan"}) {
    if (const char* q = SkipWord(p, end, word)) return q;
  }
  if (p < end && *p == '-') ++p;
  for (const absl::string_view word : {"Infinity", "inf"}) {
    if (const char* q = SkipWord(p, end, word)) return q;
  }
  return nullptr;
}

const char* SkipDigits(const char* p, const char* end) {
  const char* const begin = p;
  while (p < end && IsDigit(*p)) ++p;
  return p == begin ? nullptr : p;
}

// Reads comma-separated items up to `close`; `p` is behind the opening mark.
template <typename Item>
const char* SkipItems(const char* p, const char* end, char close, Item item) {
  p = SkipSpace(p, end);
  if (p < end && *p == close) return p + 1;
  while (true) {
    p = item(SkipSpace(p, end));
    if (p == nullptr) return nullptr;
    p = SkipSpace(p, end);
    if (p >= end) return nullptr;
    if (*p == close) return p + 1;
    if (*p != ',') return nullptr;
    ++p;
  }
}

}  // namespace

const char* SkipString(const char* p, const char* end) {
  if (p >= end || *p != '"') return nullptr;
  for (++p; p < end; ++p) {
    const unsigned char c = static_cast<unsigned char>(*p);
    if (c == '"') return p + 1;
    if (c < 0x20) return nullptr;
    if (c != '\\') continue;
    if (++p >= end) return nullptr;
    if (*p == 'u') {
      if (ReadHex4(p + 1, end) < 0) return nullptr;
      p += 4;
    } else if (std::strchr("\"\\/bfnrt", *p) == nullptr || *p == '\0') {
      return nullptr;
    }
  }
  return nullptr;
}

const char* SkipNumber(const char* p, const char* end) {
  if (const char* q = SkipNonFinite(p, end)) return q;
  if (p < end && *p == '-') ++p;
  if (p < end && *p == '0') {
    ++p;
  } else if ((p = SkipDigits(p, end)) == nullptr) {
    return nullptr;
  }
  if (p < end && *p == '.') {
    p = SkipDigits(p + 1, end);
    if (p == nullptr) return nullptr;
  }
  if (p < end && (*p | 0x20) == 'e') {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    p = SkipDigits(p, end);
  }
  return p;
}

const char* SkipValue(const char* p, const char* end, int depth) {
  p = SkipSpace(p, end);
  if (p >= end || depth > kMaxDepth) return nullptr;
  switch (*p) {
    case '"':
      return SkipString(p, end);
    case '{':
      return SkipItems(p + 1, end, '}', [&](const char* q) -> const char* {
        q = SkipString(q, end);
        if (q == nullptr) return nullptr;
        q = SkipSpace(q, end);
        if (q >= end || *q != ':') return nullptr;
        return SkipValue(q + 1, end, depth + 1);
      });
    case '[':
      return SkipItems(p + 1, end, ']', [&](const char* q) {
        return SkipValue(q, end, depth + 1);
      });
    case 't':
      return SkipWord(p, end, "true");
    case 'f':
      return SkipWord(p, end, "false");
    case 'n':
      if (const char* q = SkipWord(p, end, "null")) return q;
      [[fallthrough]];
    default:
      return SkipNumber(p, end);
  }
}

std::string DecodeString(absl::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  const char* const end = raw.data() + raw.size();
  for (const char* p = raw.data(); p < end; ++p) {
    if (*p != '\\' || p + 1 >= end) {
      out.push_back(*p);
      continue;
    }
    switch (*++p) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'u': {
        int32_t code = ReadHex4(p + 1, end);
        if (code < 0) break;  // SkipString would not have accepted it
        p += 4;
        if (code >= 0xD800 && code < 0xDC00 && end - p > 6 && p[1] == '\\' &&
            p[2] == 'u') {
          const int32_t low = ReadHex4(p + 3, end);
          if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            p += 6;
          }
        }
        AppendUtf8(static_cast<uint32_t>(code), &out);
        break;
      }
      default:
        out.push_back(*p);
    }
  }
  return out;
}

}  // namespace firstframe::json_scan
