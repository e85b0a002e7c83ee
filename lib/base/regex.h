// RE2 for code that speaks absl::string_view. Debian's RE2 takes its own
// StringPiece; this is the one place that converts.

#ifndef LIB_BASE_REGEX_H_
#define LIB_BASE_REGEX_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "re2/re2.h"

namespace firstframe {

inline re2::StringPiece ToRe2(absl::string_view text) {
  return re2::StringPiece(text.data(), text.size());
}

inline absl::string_view FromRe2(re2::StringPiece text) {
  return absl::string_view(text.data(), text.size());
}

// Compiles `pattern`; InvalidArgument with RE2's reason when it is malformed.
// The result is thread-safe.
inline absl::StatusOr<std::unique_ptr<const RE2>> CompileRegex(
    absl::string_view pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<const RE2>(ToRe2(pattern), options);
  if (!regex->ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("regular expression '", pattern, "': ", regex->error()));
  }
  return regex;
}

// Returns whether `regex` matches anywhere in `text` (search, not full match).
inline bool SearchRegex(const RE2& regex, absl::string_view text) {
  return RE2::PartialMatch(ToRe2(text), regex);
}

}  // namespace firstframe

#endif  // LIB_BASE_REGEX_H_
