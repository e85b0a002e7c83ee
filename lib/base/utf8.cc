#include "lib/base/utf8.h"

#include <cstring>

namespace firstframe {

size_t Utf8SequenceLength(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const auto is_tail = [&](size_t i) {
    return i < text.size() && (byte(i) & 0xC0) == 0x80;
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;  // a continuation byte, or overlong
  if (lead < 0xE0) return is_tail(1) ? 2 : 0;
  if (lead < 0xF0) {
    if (!is_tail(1) || !is_tail(2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (lead > 0xF4 || !is_tail(1) || !is_tail(2) || !is_tail(3)) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;  // overlong
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // above U+10FFFF
  return 4;
}

size_t FindInvalidUtf8(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word;
    while (i + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + i, sizeof(word));
      if (word & 0x8080808080808080u) break;
      i += sizeof(word);
    }
    if (i == text.size()) break;
    const size_t length = Utf8SequenceLength(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return i;
}

std::string ToValidUtf8(absl::string_view text) {
  std::string valid;
  while (true) {
    const size_t end = FindInvalidUtf8(text);
    valid.append(text.data(), end);
    if (end == text.size()) return valid;
    valid.append("\xEF\xBF\xBD");
    text.remove_prefix(end + 1);
  }
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto push = [&](uint32_t byte) {
    out->push_back(static_cast<char>(byte));
  };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | code_point >> 6);
    push(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    push(0xE0 | code_point >> 12);
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  } else {
    push(0xF0 | code_point >> 18);
    push(0x80 | (code_point >> 12 & 0x3F));
    push(0x80 | (code_point >> 6 & 0x3F));
    push(0x80 | (code_point & 0x3F));
  }
}

}  // namespace firstframe
