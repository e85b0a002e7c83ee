// The files that a program reads to start, and their place in the page cache.

#ifndef LIB_OBSERVE_FILE_CACHE_H_
#define LIB_OBSERVE_FILE_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/observe/observed_process.h"

namespace firstframe {

// Returns each library, checkpoint file and Python module file that the
// processes loaded, once, in order of path.
std::vector<std::string> FilesOf(absl::Span<const ObservedProcess> processes);

struct FileCacheState {
  int64_t files = 0;  // that could be opened
  int64_t size_bytes = 0;
  // Of their pages, the part in the page cache; empty when the kernel does not
  // say.
  std::optional<double> resident_share;
};

// Puts the files out of the page cache as far as the kernel lets go of them,
// and says how far that was: pages that another process maps (libc.so.6, say)
// stay. Writes out their changed pages first. Files that cannot be opened are
// left out.
FileCacheState EvictFiles(absl::Span<const std::string> paths);

}  // namespace firstframe

#endif  // LIB_OBSERVE_FILE_CACHE_H_
