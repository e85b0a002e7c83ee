// The page-cache state in which a run begins.

#ifndef LIB_STARTUP_CACHE_STATE_H_
#define LIB_STARTUP_CACHE_STATE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/load/residency.h"

namespace firstframe {

// More than this share still resident is not called cold.
inline constexpr double kColdShare = 0.01;

// Brings `files` to `state`: "as_is" does nothing, "warm" reads every byte,
// "cold" evicts and then proves it by residency. FailedPrecondition, with the
// share that stayed and the likely reason, when they cannot be called cold.
absl::Status PrepareCache(absl::string_view state,
                          absl::Span<const std::string> files);

// Returns the residency of all `files` together; unknown when any is.
Residency ProbeFiles(absl::Span<const std::string> files);

}  // namespace firstframe

#endif  // LIB_STARTUP_CACHE_STATE_H_
