#include "lib/base/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/sigbus_guard.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// MAX_RW_COUNT of Linux: read(2), NOTES.
constexpr size_t kMaxReadSize = 0x7ffff000;

FileIdentity MakeIdentity(const struct stat& info) {
  FileIdentity identity;
  identity.device = info.st_dev;
  identity.inode = info.st_ino;
  identity.size_bytes = info.st_size;
  identity.modified_ns =
      int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  return identity;
}

std::string DescribeType(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no file";
}

}  // namespace

absl::Status ShortReadError(const std::string& path, uint64_t offset,
                            uint64_t wanted, uint64_t got) {
  return absl::DataLossError(absl::StrCat(
      path, ": byte ", offset + got, ": found the end of the file, expected ",
      wanted - got, " bytes more (wanted ", wanted, " at byte ", offset,
      ", got ", got, ")"));
}

absl::Status ReadFully(
    absl::FunctionRef<int64_t(std::byte*, size_t, uint64_t)> pread,
    const std::string& path, uint64_t offset, absl::Span<std::byte> target) {
  size_t done = 0;
  while (done < target.size()) {
    const size_t size = std::min(target.size() - done, kMaxReadSize);
    const int64_t n = pread(target.data() + done, size, offset + done);
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(
          errno, absl::StrCat(path, ": cannot read ", size, " bytes at byte ",
                              offset + done));
    }
    if (n == 0) return ShortReadError(path, offset, target.size(), done);
    done += n;
  }
  return absl::OkStatus();
}

bool IsOnNetworkFileSystem(int fd) {
  struct statfs info;
  if (::fstatfs(fd, &info) != 0) return false;
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0x6969:      // NFS
    case 0x0BD00BD0:  // Lustre
    case 0x517B:      // SMB
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2
    case 0x00C36400:  // Ceph
    case 0x47504653:  // GPFS
    case 0x19830326:  // BeeGFS
    case 0x65735546:  // FUSE: s3fs, gcsfuse, JuiceFS, ...
    case 0x01021997:  // 9P
    case 0x5346414F:  // AFS
    case 0xAAD7AAEA:  // PanFS
      return true;
    default:
      return false;
  }
}

absl::StatusOr<FileIdentity> GetFileIdentity(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path));
  }
  return MakeIdentity(info);
}

absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path,
                                            int flags) {
  // Opening a pipe would wait for a writer.
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info;
  absl::Status status;
  if (::fstat(fd, &info) != 0) {
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path));
  } else if (!S_ISREG(info.st_mode)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        path, ": found ", DescribeType(info.st_mode), ", expected a file"));
  } else if (::fcntl(fd, F_SETFL, flags) != 0) {
    // Reads may wait: some kernels' io_uring takes O_NONBLOCK at its word.
    status = absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  if (!status.ok()) {
    ::close(fd);
    return status;
  }
  return RegularFile{fd, MakeIdentity(info)};
}

FileReader::FileReader(std::string path, const RegularFile& file)
    : path_(std::move(path)), fd_(file.fd), identity_(file.identity) {}

absl::StatusOr<std::unique_ptr<FileReader>> FileReader::Open(
    const std::string& path, ReadMethod method) {
  FF_ASSIGN_OR_RETURN(const RegularFile file, OpenRegularFile(path));
  auto reader = std::unique_ptr<FileReader>(new FileReader(path, file));
  if (method == ReadMethod::kMmap && reader->size_bytes() > 0) reader->Map();
  return reader;
}

void FileReader::Map() {
  if (IsOnNetworkFileSystem(fd_)) {
    fallback_reason_ = "the file is on a network file system";
    return;
  }
  void* const mapping =
      ::mmap(nullptr, size_bytes(), PROT_READ, MAP_SHARED, fd_, 0);
  if (mapping == MAP_FAILED) {
    fallback_reason_ = std::string(
        absl::ErrnoToStatus(errno, "the file cannot be mapped").message());
    return;
  }
  mapping_ = static_cast<const std::byte*>(mapping);
}

FileReader::~FileReader() {
  if (mapping_ != nullptr) {
    ::munmap(const_cast<std::byte*>(mapping_), size_bytes());
  }
  ::close(fd_);
}

absl::Status FileReader::Read(uint64_t offset,
                              absl::Span<std::byte> target) const {
  if (target.empty()) return absl::OkStatus();
  const bool is_inside =
      offset <= size_bytes() && target.size() <= size_bytes() - offset;
  if (mapping_ != nullptr && is_inside) {
    if (CopyFromMapping(target.data(), mapping_ + offset, target.size())) {
      return absl::OkStatus();
    }
    // pread says how much there is, or what the device's error was.
  }
  return ReadFully(
      [this](std::byte* data, size_t size, uint64_t at) -> int64_t {
        return ::pread(fd_, data, size, static_cast<off_t>(at));
      },
      path_, offset, target);
}

absl::Status FileReader::CheckUnchanged() const {
  return CheckFileUnchanged(path_, identity_);
}

absl::Status CheckFileUnchanged(const std::string& path,
                                const FileIdentity& before) {
  const absl::StatusOr<FileIdentity> now = GetFileIdentity(path);
  if (!now.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path,
        ": the file went away while it was read: ", now.status().message()));
  }
  if (*now == before) return absl::OkStatus();
  std::string what = "modification time";
  if (now->device != before.device || now->inode != before.inode) {
    what = "inode: another file took its place";
  } else if (now->size_bytes != before.size_bytes) {
    what = absl::StrCat("size, from ", before.size_bytes, " to ",
                        now->size_bytes, " bytes");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": the file changed while it was read: ", what));
}

}  // namespace firstframe
