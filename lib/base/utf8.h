// UTF-8 validation as RFC 3629 defines it: no overlong forms, no encoded
// surrogates, nothing above U+10FFFF.

#ifndef LIB_BASE_UTF8_H_
#define LIB_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace firstframe {

// Returns the byte length (1 to 4) of the well-formed sequence that `text`
// starts with, or 0 when it starts with none. `text` must not be empty.
size_t Utf8SequenceLength(absl::string_view text);

// Returns the offset of the first byte that begins no well-formed sequence, or
// text.size() when all of `text` is well formed. Linear; ASCII goes at 8 bytes
// a step.
size_t FindInvalidUtf8(absl::string_view text);

// Returns `text` with each byte that belongs to no well-formed sequence
// replaced by U+FFFD.
std::string ToValidUtf8(absl::string_view text);

// Appends `code_point` (0 to 0x10FFFF) in UTF-8.
void AppendUtf8(uint32_t code_point, std::string* out);

}  // namespace firstframe

#endif  // LIB_BASE_UTF8_H_
