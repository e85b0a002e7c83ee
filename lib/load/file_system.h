// What a path lies on: the mount, its type, and how that type is best read.

#ifndef LIB_LOAD_FILE_SYSTEM_H_
#define LIB_LOAD_FILE_SYSTEM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class FileSystemKind {
  kLocal,    // on a block device of this machine, or what looks like one
  kMemory,   // tmpfs, ramfs, hugetlbfs: there is no device below the page cache
  kNetwork,  // a server holds the bytes, and caches them out of our reach
};

absl::string_view FileSystemKindName(FileSystemKind kind);

struct FileSystem {
  std::string type;         // "ext4", "nfs4", "fuse.sshfs"; "unknown"
  std::string device;       // mount source: "/dev/nvme0n1p1", "server:/export"
  std::string mount_point;  // "/"
  std::string options;      // "rw,relatime" and the file system's own
  FileSystemKind kind = FileSystemKind::kLocal;
};

// Returns the kind that file systems of this type have, as mountinfo names
// them. FUSE counts as network unless its subtype is known to be local: nothing
// else can be known, and the network path never maps a file.
FileSystemKind KindOfFileSystemType(absl::string_view type);

// Finds the mount that holds `real_path` (absolute, links resolved) in the text
// of /proc/self/mountinfo: the longest mount point that is a prefix by whole
// components; of several on one point, the last. NotFound when none matches.
absl::StatusOr<FileSystem> FindMount(absl::string_view mountinfo,
                                     absl::string_view real_path);

// Describes what `path` (a file or a folder) lies on. Codes from errno when it
// does not exist. Without a readable /proc the type is "unknown".
absl::StatusOr<FileSystem> DescribeFileSystem(const std::string& path);

}  // namespace firstframe

#endif  // LIB_LOAD_FILE_SYSTEM_H_
