// Scans a tree of sources for mentions of regions.

#ifndef LIB_REGIONS_SOURCE_TREE_H_
#define LIB_REGIONS_SOURCE_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/regions/source_scanner.h"

namespace firstframe {

struct SourceMention {
  std::string path;  // as the tree was named, joined with "/"
  RegionMention mention;
};

struct SourceScanOptions {
  // Paths (below the tree) that match any of these patterns are left out.
  std::vector<std::string> exclude = {};
  int threads = 2;
};

struct SourceScan {
  std::vector<SourceMention> mentions;  // by path, then line
  int64_t file_count = 0;               // read
  int64_t byte_count = 0;
  std::vector<std::string> skipped;  // unreadable, or over kMaxSourceBytes
};

// A generated or vendored file larger than this is not somebody's source.
inline constexpr int64_t kMaxSourceBytes = 8 << 20;

// Reads every source file below `root` (or the file `root`). Folders that begin
// with '.', and node_modules and __pycache__, are left out; links to folders
// are not followed. NotFound when `root` does not exist.
absl::StatusOr<SourceScan> ScanSourceTree(const std::string& root,
                                          const SourceScanOptions& options);

}  // namespace firstframe

#endif  // LIB_REGIONS_SOURCE_TREE_H_
