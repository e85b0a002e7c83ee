#include "lib/load/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

// read(2) transfers at most this much at once on Linux, whatever is asked.
constexpr size_t kMaxTransferBytes = 0x7ffff000;

FileIdentity IdentityOf(const struct stat& info) {
  return {.device = static_cast<uint64_t>(info.st_dev),
          .inode = static_cast<uint64_t>(info.st_ino),
          .size_bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns =
              info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec};
}

}  // namespace

absl::StatusOr<DataFile> DataFile::Open(const std::string& path, bool direct) {
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info;
  if (::fstat(fd, &info) != 0) {
    const int error = errno;
    ::close(fd);
    return absl::ErrnoToStatus(error, absl::StrCat("cannot stat ", path));
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected a regular file"));
  }
  return DataFile(path, fd, IdentityOf(info));
}

DataFile& DataFile::operator=(DataFile&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    path_ = std::move(other.path_);
    fd_ = std::exchange(other.fd_, -1);
    identity_ = other.identity_;
  }
  return *this;
}

DataFile::~DataFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status DataFile::ShortRead(uint64_t offset, uint64_t wanted,
                                 uint64_t got) const {
  return absl::DataLossError(absl::StrCat(
      path_, ": read ", got, " of ", wanted, " bytes at byte ", offset,
      "; the file had ", identity_.size_bytes, " bytes when it was opened"));
}

absl::Status DataFile::Read(uint64_t offset,
                            absl::Span<std::byte> buffer) const {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t n = ::pread(fd_, buffer.data() + done,
                              std::min(buffer.size() - done, kMaxTransferBytes),
                              static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(
          errno, absl::StrCat(path_, ": cannot read ", buffer.size() - done,
                              " bytes at byte ", offset + done));
    }
    if (n == 0) return ShortRead(offset, buffer.size(), done);
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status DataFile::ReadScattered(uint64_t offset,
                                     absl::Span<iovec> parts) const {
  while (!parts.empty()) {
    if (parts.front().iov_len == 0) {
      parts.remove_prefix(1);
      continue;
    }
    const int count = static_cast<int>(std::min<size_t>(parts.size(), IOV_MAX));
    const ssize_t n =
        ::preadv(fd_, parts.data(), count, static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::ErrnoToStatus(
          errno, absl::StrCat(path_, ": cannot read at byte ", offset));
    }
    if (n == 0) {
      uint64_t wanted = 0;
      for (const iovec& part : parts) wanted += part.iov_len;
      return ShortRead(offset, wanted, 0);
    }
    offset += static_cast<uint64_t>(n);
    size_t left = static_cast<size_t>(n);
    while (left > 0) {
      iovec& part = parts.front();
      const size_t step = std::min(left, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + step;
      part.iov_len -= step;
      left -= step;
      if (part.iov_len == 0) parts.remove_prefix(1);
    }
  }
  return absl::OkStatus();
}

absl::Status DataFile::CheckUnchanged() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot stat ", path_));
  }
  const FileIdentity now = IdentityOf(info);
  if (now != identity_) {
    return absl::AbortedError(absl::StrCat(
        path_, ": the file changed while it was read: it had ",
        identity_.size_bytes, " bytes, now ", now.size_bytes,
        now.size_bytes == identity_.size_bytes ? " with another time" : ""));
  }
  if (::stat(path_.c_str(), &info) != 0 || IdentityOf(info) != identity_) {
    return absl::AbortedError(
        absl::StrCat(path_, ": the file was replaced while it was read"));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
