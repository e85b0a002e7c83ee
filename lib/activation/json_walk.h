// Walks the members of a JSON object or array in place.

#ifndef LIB_ACTIVATION_JSON_WALK_H_
#define LIB_ACTIVATION_JSON_WALK_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe::json_scan {

// Calls `visit` with each member's key (as between its quotes) and value (as
// text). DataLoss with the byte when `object` is no whole object; an error of
// `visit` ends the walk. Nothing is copied, so gigabytes are fine.
absl::Status ForEachMember(absl::string_view object,
                           absl::FunctionRef<absl::Status(
                               absl::string_view key, absl::string_view value)>
                               visit);

absl::Status ForEachElement(
    absl::string_view array,
    absl::FunctionRef<absl::Status(absl::string_view value)> visit);

// Returns the value of `key` in `object`, or nothing.
std::optional<absl::string_view> FindMember(absl::string_view object,
                                            absl::string_view key);

// Returns a number's value; nothing for other values. NaN and infinities are
// numbers here.
std::optional<double> ReadNumber(absl::string_view value);

}  // namespace firstframe::json_scan

#endif  // LIB_ACTIVATION_JSON_WALK_H_
