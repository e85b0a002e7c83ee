#include "lib/regions/comment_spans.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace firstframe {
namespace {

constexpr size_t kNone = absl::string_view::npos;

size_t EndOr(absl::string_view text, size_t found, size_t length) {
  return found == kNone ? text.size() : found + length;
}

// Returns the offset after the string literal that opens at `at`; it ends at
// its quote or, unclosed, at the end of the line.
size_t SkipString(absl::string_view text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote || text[i] == '\n') {
      return i + 1;
    }
  }
  return text.size();
}

// Whether only white space lies between the start of the line and `at`.
bool StartsLine(absl::string_view text, size_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
  return at == 0 || text[at - 1] == '\n';
}

}  // namespace

std::vector<TextSpan> PythonCommentSpans(absl::string_view text) {
  std::vector<TextSpan> spans;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (c == '#') {
      const size_t end = EndOr(text, text.find('\n', i), 0);
      spans.push_back({TextSpan::Kind::kComment, i, end});
      i = end;
    } else if (c == '"' || c == '\'') {
      const char triple[3] = {c, c, c};
      const absl::string_view mark(triple, 3);
      if (text.substr(i, 3) != mark) {
        i = SkipString(text, i);
        continue;
      }
      const size_t end = EndOr(text, text.find(mark, i + 3), 3);
      if (StartsLine(text, i)) {
        spans.push_back({TextSpan::Kind::kDocstring, i, end});
      }
      i = end;
    } else {
      ++i;
    }
  }
  return spans;
}

std::vector<TextSpan> CppCommentSpans(absl::string_view text) {
  std::vector<TextSpan> spans;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '/' && (next == '/' || next == '*')) {
      const size_t end = next == '/' ? EndOr(text, text.find('\n', i), 0)
                                     : EndOr(text, text.find("*/", i + 2), 2);
      spans.push_back({TextSpan::Kind::kComment, i, end});
      i = end;
    } else if (c == '"') {
      i = SkipString(text, i);
    } else if (c == '\'' && (i == 0 || !absl::ascii_isalnum(text[i - 1]))) {
      i = SkipString(text, i);  // not a digit separator: 10'000
    } else {
      ++i;
    }
  }
  return spans;
}

const TextSpan* FindSpan(const std::vector<TextSpan>& spans, size_t offset) {
  const auto after = std::upper_bound(
      spans.begin(), spans.end(), offset,
      [](size_t at, const TextSpan& span) { return at < span.begin; });
  if (after == spans.begin()) return nullptr;
  const TextSpan& span = *(after - 1);
  return offset < span.end ? &span : nullptr;
}

}  // namespace firstframe
