// What the renderings of a comparison share.

#ifndef LIB_ACTIVATION_REPORT_PARTS_H_
#define LIB_ACTIVATION_REPORT_PARTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/activation/divergence.h"

namespace firstframe {

// Names may hold anything that JSON can say; a terminal gets valid UTF-8
// without control characters.
std::string Printable(absl::string_view text);

// "hard", "coherent", ...
absl::string_view FireReasonName(FireReason reason);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_REPORT_PARTS_H_
