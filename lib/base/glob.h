// Shell patterns over names: * (any run), ? (any one byte), [a-z] and [!a-z].

#ifndef LIB_BASE_GLOB_H_
#define LIB_BASE_GLOB_H_

#include "absl/strings/string_view.h"

namespace firstframe {

// Returns whether `text` is held by `pattern` whole. '*' also matches '/' and
// '.'. A '[' without its ']' stands for itself. Never exponential: O(|pattern|
// |text|).
bool GlobMatch(absl::string_view pattern, absl::string_view text);

// Returns whether `text` has a character that GlobMatch gives a meaning.
bool IsGlob(absl::string_view text);

}  // namespace firstframe

#endif  // LIB_BASE_GLOB_H_
