#include "lib/load/file_system.h"

#include <errno.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

// Undoes mountinfo's octal escapes of space, tab, newline and backslash.
std::string Unescape(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7';
    };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out.push_back(static_cast<char>((text[i + 1] - '0') * 64 +
                                      (text[i + 2] - '0') * 8 +
                                      (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool IsBelow(absl::string_view path, absl::string_view mount_point) {
  if (mount_point == "/") return absl::StartsWith(path, "/");
  return absl::StartsWith(path, mount_point) &&
         (path.size() == mount_point.size() || path[mount_point.size()] == '/');
}

}  // namespace

absl::string_view FileSystemKindName(FileSystemKind kind) {
  switch (kind) {
    case FileSystemKind::kLocal:
      return "local";
    case FileSystemKind::kMemory:
      return "memory";
    case FileSystemKind::kNetwork:
      return "network";
  }
  return "local";
}

FileSystemKind KindOfFileSystemType(absl::string_view type) {
  static constexpr absl::string_view kMemory[] = {"tmpfs", "ramfs", "hugetlbfs",
                                                  "devtmpfs"};
  static constexpr absl::string_view kNetwork[] = {
      "nfs",   "nfs4",  "cifs", "smb3",  "lustre",    "beegfs",
      "ceph",  "gpfs",  "9p",   "afs",   "glusterfs", "wekafs",
      "pvfs2", "ocfs2", "gfs2", "fhgfs", "virtiofs",  "daos"};
  static constexpr absl::string_view kLocalFuse[] = {"fuseblk", "fuse.ntfs",
                                                     "fuse.ntfs-3g"};
  const auto in = [type](const auto& list) {
    return std::find(std::begin(list), std::end(list), type) != std::end(list);
  };
  if (in(kMemory)) return FileSystemKind::kMemory;
  if (in(kNetwork)) return FileSystemKind::kNetwork;
  if (in(kLocalFuse)) return FileSystemKind::kLocal;
  if (type == "fuse" || absl::StartsWith(type, "fuse.")) {
    return FileSystemKind::kNetwork;
  }
  return FileSystemKind::kLocal;
}

absl::StatusOr<FileSystem> FindMount(absl::string_view mountinfo,
                                     absl::string_view real_path) {
  // One mount a line (proc(5)):
  //   36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda rw
  FileSystem best;
  bool found = false;
  for (const absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    const std::vector<absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> left = absl::StrSplit(halves[0], ' ');
    const std::vector<absl::string_view> right =
        absl::StrSplit(halves[1], absl::MaxSplits(' ', 2));
    if (left.size() < 6 || right.size() < 2) continue;
    const std::string mount_point = Unescape(left[4]);
    if (!IsBelow(real_path, mount_point)) continue;
    if (found && mount_point.size() < best.mount_point.size()) continue;
    found = true;
    best.mount_point = mount_point;
    best.type = std::string(right[0]);
    best.device = Unescape(right[1]);
    best.options = std::string(left[5]);
    if (right.size() == 3 && !right[2].empty()) {
      absl::StrAppend(&best.options, ",", right[2]);
    }
  }
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("no mount was found for ", real_path));
  }
  best.kind = KindOfFileSystemType(best.type);
  return best;
}

absl::StatusOr<FileSystem> DescribeFileSystem(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot resolve ", path));
  }
  const std::string real_path = real;
  ::free(real);
  std::ifstream file("/proc/self/mountinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  absl::StatusOr<FileSystem> mount = FindMount(text, real_path);
  if (mount.ok()) return mount;
  FileSystem unknown;
  unknown.type = "unknown";
  return unknown;
}

}  // namespace firstframe
