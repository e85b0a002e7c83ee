#include "lib/load/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"

namespace firstframe {

absl::StatusOr<DataFile> DataFile::Open(const std::string& path, bool direct) {
  FF_ASSIGN_OR_RETURN(const RegularFile file,
                      OpenRegularFile(path, direct ? O_DIRECT : 0));
  return DataFile(path, file.fd, file.identity);
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
  return ShortReadError(path_, offset, wanted, got);
}

absl::Status DataFile::Read(uint64_t offset,
                            absl::Span<std::byte> buffer) const {
  return ReadFully(
      [this](std::byte* data, size_t size, uint64_t at) -> int64_t {
        return ::pread(fd_, data, size, static_cast<off_t>(at));
      },
      path_, offset, buffer);
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
  const absl::Status status = CheckFileUnchanged(path_, identity_);
  return status.ok() ? status : absl::AbortedError(status.message());
}

}  // namespace firstframe
