// Sizes as people write them: "64MiB", "3.15GB", "4096".

#ifndef LIB_BASE_BYTE_SIZE_H_
#define LIB_BASE_BYTE_SIZE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Reads a number with an optional unit: B, decimal KB MB GB TB (and K M G T),
// or binary KiB MiB GiB TiB; case does not matter. A fraction of a byte is
// rounded to the nearest. InvalidArgument when it is anything else, negative,
// or over 2^63 - 1.
absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text);

}  // namespace firstframe

#endif  // LIB_BASE_BYTE_SIZE_H_
