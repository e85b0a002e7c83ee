#include "lib/load/direct_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/load/file_system.h"

namespace firstframe {
namespace {

// The page size suits every block device in use; STATX_DIOALIGN (Linux 6.1)
// tells when more is needed.
constexpr uint32_t kDefaultAlignment = 4096;
constexpr uint32_t kLargestAlignment = 1 << 20;

#ifdef STATX_DIOALIGN
void ReadAlignment(DirectFile* direct) {
  struct statx info;
  if (::statx(direct->file.fd(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) !=
          0 ||
      !(info.stx_mask & STATX_DIOALIGN)) {
    return;
  }
  const auto at_least = [](uint32_t value) {
    return std::clamp(value, kDefaultAlignment, kLargestAlignment);
  };
  direct->memory_alignment = at_least(info.stx_dio_mem_align);
  direct->offset_alignment = at_least(info.stx_dio_offset_align);
}
#else
void ReadAlignment(DirectFile*) {}
#endif

}  // namespace

absl::StatusOr<DirectFile> OpenDirect(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const FileSystem file_system, DescribeFileSystem(path));
  if (file_system.kind == FileSystemKind::kMemory) {
    // Newer kernels accept O_DIRECT on tmpfs and copy from memory all the same.
    return absl::UnavailableError(absl::StrCat(
        path, ": ", file_system.type, " has no device to read from directly"));
  }
  absl::StatusOr<DataFile> file = DataFile::Open(path, /*direct=*/true);
  if (!file.ok()) {
    if (file.status().code() == absl::StatusCode::kInvalidArgument) {
      return absl::UnavailableError(
          absl::StrCat(path, ": ", file_system.type, " refuses O_DIRECT"));
    }
    return file.status();
  }
  DirectFile direct{.file = *std::move(file)};
  ReadAlignment(&direct);
  void* buffer = nullptr;
  const size_t size = direct.offset_alignment;
  if (::posix_memalign(&buffer, std::max<size_t>(direct.memory_alignment, size),
                       size)) {
    return absl::ResourceExhaustedError("no memory for a direct test read");
  }
  const std::unique_ptr<void, decltype(&::free)> owner(buffer, &::free);
  ssize_t got;
  do {
    got = ::pread(direct.file.fd(), buffer, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    return absl::UnavailableError(absl::StrCat(
        path, ": ", file_system.type,
        " opens with O_DIRECT but refuses to read: ", ::strerror(errno)));
  }
  return direct;
}

}  // namespace firstframe
