// The checkpoint that is used where none is given.

#ifndef LIB_STARTUP_DEFAULT_CHECKPOINT_H_
#define LIB_STARTUP_DEFAULT_CHECKPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Returns the folder that keeps it: `cache_home`, else `home`/.cache, else
// /tmp, plus firstframe/NAME. Arguments are the values of XDG_CACHE_HOME and
// HOME, null when unset; relative ones are ignored, as the XDG specification
// says.
std::string CachedCheckpointFolder(absl::string_view name,
                                   const char* cache_home, const char* home);

// Makes the synthetic Wan VAE called `preset` in `folder` unless it is there,
// and returns whether it was made. Of several processes at once each makes its
// own and one stays.
absl::StatusOr<bool> EnsureSyntheticVae(const std::string& folder,
                                        absl::string_view preset);

}  // namespace firstframe

#endif  // LIB_STARTUP_DEFAULT_CHECKPOINT_H_
