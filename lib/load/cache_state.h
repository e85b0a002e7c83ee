// Puts a checkpoint's files into, or out of, the page cache, and proves it.

#ifndef LIB_LOAD_CACHE_STATE_H_
#define LIB_LOAD_CACHE_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/load/residency.h"
#include "lib/load/sources.h"

namespace firstframe {

enum class CacheMode {
  kAsIs,
  kWarm,  // every page is in the page cache
  kCold,  // at most 1 % of the pages are
};

absl::StatusOr<CacheMode> ParseCacheMode(absl::string_view text);
absl::string_view CacheModeName(CacheMode mode);

// Brings the files into the state that `mode` names and returns what the kernel
// says about them then. FailedPrecondition, with the residency found, when the
// state was not reached or cannot be proven: a figure called cold must be cold.
// A server's cache is out of reach: files on network file systems cannot be
// cold.
absl::StatusOr<Residency> PrepareCache(const OpenedSources& sources,
                                       CacheMode mode);

}  // namespace firstframe

#endif  // LIB_LOAD_CACHE_STATE_H_
