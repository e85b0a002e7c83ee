// Text in the columns of a terminal.

#ifndef LIB_BASE_TEXT_WIDTH_H_
#define LIB_BASE_TEXT_WIDTH_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// Returns `text` with control characters, which could move a terminal's cursor
// or break a line, and bytes that are not UTF-8 replaced by U+FFFD.
std::string PrintableText(absl::string_view text);

// Returns how many columns printable `text` takes: 2 for East Asian wide
// characters and emoji, 0 for combining marks, 1 for the rest. Ranges: Unicode
// 15, EastAsianWidth.txt (W and F) and the usual combining blocks.
size_t DisplayWidth(absl::string_view text);

// Returns printable `text` in exactly `width` columns: padded with spaces on
// the right, or cut in the middle around an ellipsis (both ends of a name
// tell). `ellipsis` must be one column wide.
std::string FitWidth(absl::string_view text, size_t width,
                     absl::string_view ellipsis = "\xE2\x80\xA6");

}  // namespace firstframe

#endif  // LIB_BASE_TEXT_WIDTH_H_
