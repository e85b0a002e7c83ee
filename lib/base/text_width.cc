#include "lib/base/text_width.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

constexpr Range kZeroWidth[] = {
    {0x300, 0x36F},   {0x483, 0x489},    {0x591, 0x5BD},   {0x610, 0x61A},
    {0x64B, 0x65F},   {0x200B, 0x200F},  {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
    {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
    {0x20000, 0x3FFFD}};

template <size_t N>
bool IsIn(const Range (&ranges)[N], uint32_t code_point) {
  return std::any_of(ranges, ranges + N, [&](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

uint32_t CodePoint(absl::string_view sequence) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(sequence[i]);
  };
  uint32_t code_point = sequence.size() == 1   ? byte(0)
                        : sequence.size() == 2 ? byte(0) & 0x1F
                        : sequence.size() == 3 ? byte(0) & 0x0F
                                               : byte(0) & 0x07;
  for (size_t i = 1; i < sequence.size(); ++i) {
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return code_point;
}

// Calls `on_character(bytes, columns)` for each character of well-formed text.
template <typename OnCharacter>
void ForEachCharacter(absl::string_view text, OnCharacter on_character) {
  while (!text.empty()) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(text), 1);
    const absl::string_view bytes = text.substr(0, length);
    const uint32_t code_point = CodePoint(bytes);
    on_character(bytes, IsIn(kZeroWidth, code_point) ? 0
                        : IsIn(kWide, code_point)    ? 2
                                                     : 1);
    text.remove_prefix(length);
  }
}

}  // namespace

std::string PrintableText(absl::string_view text) {
  std::string printable;
  ForEachCharacter(ToValidUtf8(text), [&](absl::string_view bytes, int) {
    const uint32_t code_point = CodePoint(bytes);
    const bool is_control =
        code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
    absl::StrAppend(&printable, is_control ? "\xEF\xBF\xBD" : bytes);
  });
  return printable;
}

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  ForEachCharacter(text,
                   [&](absl::string_view, int columns) { width += columns; });
  return width;
}

std::string FitWidth(absl::string_view text, size_t width,
                     absl::string_view ellipsis) {
  const size_t full = DisplayWidth(text);
  if (full <= width) return absl::StrCat(text, std::string(width - full, ' '));
  if (width == 0) return "";
  // The end keeps a third: dotted names differ there, and in their beginning.
  const size_t tail_width = (width - 1) / 3;
  const size_t head_width = width - 1 - tail_width;
  std::string head, tail;
  size_t at = 0, head_used = 0, tail_used = 0;
  bool in_head = true;
  ForEachCharacter(text, [&](absl::string_view bytes, int columns) {
    in_head = in_head && head_used + columns <= head_width;
    if (in_head) {
      absl::StrAppend(&head, bytes);
      head_used += columns;
    } else if (full - at <= tail_width) {
      absl::StrAppend(&tail, bytes);
      tail_used += columns;
    }
    at += columns;
  });
  return absl::StrCat(head, ellipsis, tail,
                      std::string(width - 1 - head_used - tail_used, ' '));
}

}  // namespace firstframe
