// Where a source file's comments and docstrings lie.

#ifndef LIB_REGIONS_COMMENT_SPANS_H_
#define LIB_REGIONS_COMMENT_SPANS_H_

#include <cstddef>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

struct TextSpan {
  enum class Kind { kComment, kDocstring };
  Kind kind;
  size_t begin;
  size_t end;  // one past the last byte
};

// Python: '#' comments, and triple-quoted strings that are statements of their
// own. A triple-quoted string that is a value (a script in a test) is code.
// Sorted, disjoint; an unclosed one ends with the text.
std::vector<TextSpan> PythonCommentSpans(absl::string_view text);

// C++: // and /* */, outside string and character literals. Raw string
// delimiters are taken as ordinary strings up to the first quote.
std::vector<TextSpan> CppCommentSpans(absl::string_view text);

// Returns the span that holds `offset`, or null.
const TextSpan* FindSpan(const std::vector<TextSpan>& spans, size_t offset);

}  // namespace firstframe

#endif  // LIB_REGIONS_COMMENT_SPANS_H_
