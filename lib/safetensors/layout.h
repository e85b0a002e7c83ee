// Which files make up the checkpoint that a path means.

#ifndef LIB_SAFETENSORS_LAYOUT_H_
#define LIB_SAFETENSORS_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/safetensors/finding.h"

namespace firstframe {

struct CheckpointLayout {
  std::string path;        // as given
  std::string folder;      // of its files
  std::string index_path;  // empty when there is none
  std::vector<std::string>
      files;                      // paths, sorted; empty when the index decides
  std::vector<Finding> warnings;  // files that are left aside
};

// The names in a folder, each list sorted.
struct FolderListing {
  std::vector<std::string> indexes;  // *.safetensors.index*.json
  std::vector<std::string> files;    // *.safetensors
  std::vector<std::string> folders;
  std::vector<std::string> others;
};

// Codes from errno.
absl::StatusOr<FolderListing> ListFolder(const std::string& folder);

// Looks at names and first bytes alone.
//
// A file is one safetensors file, or an index when its name ends in .json or,
// without the suffix .safetensors, its text begins with '{' (a blob of the
// Hugging Face cache has no suffix).
//
// In a folder, the index decides: the one without a variant
// (NAME.safetensors.index.json), else the only one with a variant
// (NAME.safetensors.index.fp16.json). Without an index:
// diffusion_pytorch_model.safetensors or model.safetensors, else every
// *.safetensors together. InvalidArgument when there are two indexes to choose
// from; NotFound when there is nothing, with what is there instead.
absl::StatusOr<CheckpointLayout> FindCheckpoint(const std::string& path);

// Returns where `path` leads when it is a symbolic link, else "".
std::string LinkTarget(const std::string& path);

// Says why `path` cannot be opened: "nothing", or, for a link whose target is
// gone, "a link to TARGET, which is not there".
std::string DescribeAbsence(const std::string& path);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_LAYOUT_H_
