#include "lib/safetensors/json_cursor.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Bytes that end a run of plain string text.
constexpr std::array<bool, 256> kEndsRun = [] {
  std::array<bool, 256> table = {};
  for (int i = 0; i < 0x20; ++i) table[i] = true;
  table['"'] = true;
  table['\\'] = true;
  return table;
}();

const char* FindRunEnd(const char* next, const char* end) {
  while (next != end && !kEndsRun[static_cast<uint8_t>(*next)]) ++next;
  return next;
}

}  // namespace

bool JsonCursor::FailAt(uint64_t position, std::string found,
                        absl::string_view expected) {
  if (failed_) return false;
  failed_ = true;
  error_ = {position, std::move(found), std::string(expected)};
  return false;
}

std::string JsonCursor::DescribeNext() const {
  if (next_ == end_) return "the end";
  switch (*next_) {
    case '"':
      return "a string";
    case '{':
      return "an object";
    case '[':
      return "an array";
    case 't':
    case 'f':
      return "true or false";
    case 'n':
      return "null";
    default:
      break;
  }
  const uint8_t byte = static_cast<uint8_t>(*next_);
  if (IsDigit(*next_) || *next_ == '-') {
    const char* last = next_;
    while (last != end_ && last - next_ < 24 &&
           (IsDigit(*last) || *last == '-' || *last == '+' || *last == '.' ||
            *last == 'e' || *last == 'E')) {
      ++last;
    }
    return absl::StrCat("the number ", absl::string_view(next_, last - next_));
  }
  if (byte > 0x20 && byte < 0x7F)
    return absl::StrCat("'", absl::string_view(next_, 1), "'");
  return absl::StrFormat("byte 0x%02X", byte);
}

std::optional<absl::string_view> JsonCursor::String(
    absl::string_view expected) {
  if (!Sees('"')) {
    Fail(expected);
    return std::nullopt;
  }
  const char* const start = ++next_;
  next_ = FindRunEnd(next_, end_);
  if (!Sees('"')) return EscapedString(start);
  return absl::string_view(start, next_++ - start);
}

// Goes on where the plain text from `start` stopped.
std::optional<absl::string_view> JsonCursor::EscapedString(const char* start) {
  std::string text(start, next_);
  while (true) {
    if (next_ == end_) {
      Fail("the string's closing quote");
      return std::nullopt;
    }
    if (*next_ == '"') break;
    if (*next_ != '\\') {
      Fail("control characters in strings written as \\u00XX");
      return std::nullopt;
    }
    if (!Escape(&text)) return std::nullopt;
    const char* const run = next_;
    next_ = FindRunEnd(next_, end_);
    text.append(run, next_);
  }
  ++next_;
  unescaped_.push_back(std::move(text));
  return absl::string_view(unescaped_.back());
}

bool JsonCursor::Escape(std::string* text) {
  ++next_;  // the backslash
  static constexpr absl::string_view kExpected = "one of \"\\/bfnrtu";
  if (next_ == end_) return Fail(kExpected);
  switch (*next_) {
    case '"':
    case '\\':
    case '/':
      text->push_back(*next_++);
      return true;
    case 'b':
      return text->push_back('\b'), ++next_, true;
    case 'f':
      return text->push_back('\f'), ++next_, true;
    case 'n':
      return text->push_back('\n'), ++next_, true;
    case 'r':
      return text->push_back('\r'), ++next_, true;
    case 't':
      return text->push_back('\t'), ++next_, true;
    case 'u':
      break;
    default:
      return Fail(kExpected);
  }
  const uint64_t start = position() - 1;
  ++next_;
  const std::optional<uint32_t> high = HexQuad();
  if (!high) return false;
  uint32_t code = *high;
  if (code >= 0xD800 && code < 0xE000) {
    static constexpr absl::string_view kPair = "a pair of surrogates";
    if (code >= 0xDC00 || end_ - next_ < 2 || next_[0] != '\\' ||
        next_[1] != 'u') {
      return FailAt(start, "a lone surrogate", kPair);
    }
    next_ += 2;
    const std::optional<uint32_t> low = HexQuad();
    if (!low) return false;
    if (*low < 0xDC00 || *low > 0xDFFF) {
      return FailAt(start, "a lone surrogate", kPair);
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
  }
  AppendUtf8(code, text);
  return true;
}

std::optional<uint32_t> JsonCursor::HexQuad() {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i, ++next_) {
    const char c = next_ == end_ ? '\0' : *next_;
    const int digit = IsDigit(c)               ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : -1;
    if (digit < 0) {
      Fail("four hexadecimal digits");
      return std::nullopt;
    }
    value = value * 16 + digit;
  }
  return value;
}

std::optional<uint64_t> JsonCursor::Unsigned(absl::string_view expected) {
  const char* const start = next_;
  uint64_t value = 0;
  bool overflow = false;
  while (next_ != end_ && IsDigit(*next_)) {
    overflow |= __builtin_mul_overflow(value, 10, &value);
    overflow |= __builtin_add_overflow(value, *next_ - '0', &value);
    ++next_;
  }
  const bool leading_zero = next_ - start > 1 && *start == '0';
  if (next_ == start || overflow || leading_zero || Sees('.') || Sees('e') ||
      Sees('E')) {
    next_ = start;
    Fail(expected);
    return std::nullopt;
  }
  return value;
}

bool JsonCursor::SkipNumber() {
  Take('-');
  if (Sees('0')) {
    ++next_;
  } else {
    if (next_ == end_ || !IsDigit(*next_)) return Fail("a value");
    while (next_ != end_ && IsDigit(*next_)) ++next_;
  }
  if (Sees('.')) {
    ++next_;
    if (next_ == end_ || !IsDigit(*next_)) return Fail("a digit");
    while (next_ != end_ && IsDigit(*next_)) ++next_;
  }
  if (Sees('e') || Sees('E')) {
    ++next_;
    if (Sees('+') || Sees('-')) ++next_;
    if (next_ == end_ || !IsDigit(*next_)) return Fail("a digit");
    while (next_ != end_ && IsDigit(*next_)) ++next_;
  }
  return true;
}

bool JsonCursor::SkipWord(absl::string_view word) {
  if (absl::string_view(next_, end_ - next_).substr(0, word.size()) != word) {
    return FailAt(position(), "an unknown word", "a value");
  }
  next_ += word.size();
  return true;
}

bool JsonCursor::SkipValue(int depth) {
  SkipSpace();
  if (next_ == end_) return Fail("a value");
  switch (*next_) {
    case '"':
      return String("a string").has_value();
    case 't':
      return SkipWord("true");
    case 'f':
      return SkipWord("false");
    case 'n':
      return SkipWord("null");
    case '{':
    case '[':
      return SkipContainer(depth);
    default:
      return SkipNumber();
  }
}

bool JsonCursor::SkipContainer(int depth) {
  if (depth >= kMaxDepth) {
    return FailAt(position(), "values nested deeper",
                  absl::StrCat("at most ", kMaxDepth, " levels"));
  }
  const bool is_object = *next_++ == '{';
  const char close = is_object ? '}' : ']';
  if (Take(close)) return true;
  do {
    if (is_object) {
      SkipSpace();
      if (!String("a key")) return false;
      if (!Expect(':', "':'")) return false;
    }
    if (!SkipValue(depth + 1)) return false;
  } while (Take(','));
  return Expect(close, is_object ? "',' or '}'" : "',' or ']'");
}

}  // namespace firstframe
