#include "lib/activation/python_json.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

// Decodes the well-formed sequence of `length` bytes at `text`.
uint32_t DecodeUtf8(absl::string_view text, size_t length) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[i]));
  };
  switch (length) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
             (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

// Returns whether `text` begins with a surrogate in three bytes (ED A0..BF xx),
// which UTF-8 forbids and Python strings hold.
bool BeginsWithSurrogate(absl::string_view text) {
  return text.size() >= 3 && text[0] == '\xED' &&
         (static_cast<uint8_t>(text[1]) & 0xE0) == 0xA0 &&
         (static_cast<uint8_t>(text[2]) & 0xC0) == 0x80;
}

void AppendEscape(uint32_t code, std::string* out) {
  if (code >= 0x10000) {
    AppendEscape(0xD800 + ((code - 0x10000) >> 10), out);
    AppendEscape(0xDC00 + ((code - 0x10000) & 0x3FF), out);
    return;
  }
  absl::StrAppendFormat(out, "\\u%04x", code);
}

void AppendAscii(char c, std::string* out) {
  switch (c) {
    case '"':
      out->append("\\\"");
      return;
    case '\\':
      out->append("\\\\");
      return;
    case '\n':
      out->append("\\n");
      return;
    case '\r':
      out->append("\\r");
      return;
    case '\t':
      out->append("\\t");
      return;
    case '\b':
      out->append("\\b");
      return;
    case '\f':
      out->append("\\f");
      return;
    default:
      if (c >= ' ' && c <= '~') {
        out->push_back(c);
      } else {
        AppendEscape(static_cast<uint8_t>(c), out);
      }
  }
}

}  // namespace

void AppendPythonFloat(double value, std::string* out) {
  if (std::isnan(value)) {
    out->append("NaN");
    return;
  }
  if (std::isinf(value)) {
    out->append(value > 0 ? "Infinity" : "-Infinity");
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 std::chars_format::scientific);
  absl::string_view text(buffer, end.ptr - buffer);
  if (text.front() == '-') {
    out->push_back('-');
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 2) digits.append(text.data() + 2, e - 2);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out->append(digits, 0, 1);
    if (count > 1) absl::StrAppend(out, ".", digits.substr(1));
    absl::StrAppendFormat(out, "e%c%02d", exponent < 0 ? '-' : '+',
                          std::abs(exponent));
  } else if (exponent < 0) {
    absl::StrAppend(out, "0.", std::string(-exponent - 1, '0'), digits);
  } else if (count <= exponent + 1) {
    absl::StrAppend(out, digits, std::string(exponent + 1 - count, '0'), ".0");
  } else {
    absl::StrAppend(out, digits.substr(0, exponent + 1), ".",
                    digits.substr(exponent + 1));
  }
}

void AppendPythonString(absl::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    size_t length = Utf8SequenceLength(text);
    if (length == 1) {
      AppendAscii(text.front(), out);
    } else if (length > 1) {
      AppendEscape(DecodeUtf8(text, length), out);
    } else if (BeginsWithSurrogate(text)) {
      length = 3;
      AppendEscape(DecodeUtf8(text, length), out);
    } else {
      length = 1;
      AppendEscape(0xDC00 + static_cast<uint8_t>(text.front()), out);
    }
    text.remove_prefix(length);
  }
  out->push_back('"');
}

void AppendPythonRepr(absl::string_view text, std::string* out) {
  const bool has_single = text.find('\'') != absl::string_view::npos;
  const bool has_double = text.find('"') != absl::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  out->push_back(quote);
  for (const char c : text) {
    if (c == quote || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (c == '\t') {
      out->append("\\t");
    } else if (c == '\r') {
      out->append("\\r");
    } else if (static_cast<uint8_t>(c) < ' ' || c == '\x7F') {
      absl::StrAppendFormat(out, "\\x%02x", static_cast<uint8_t>(c));
    } else {
      out->push_back(c);
    }
  }
  out->push_back(quote);
}

}  // namespace firstframe
