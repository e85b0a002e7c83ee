// A file held open for positioned reads that scatter, or bypass the page cache:
// what lib/base/file_reader.h does not do. Errors are the same.

#ifndef LIB_LOAD_DATA_FILE_H_
#define LIB_LOAD_DATA_FILE_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/file_reader.h"

namespace firstframe {

// Movable. Reads are thread-safe: they carry their own offsets.
class DataFile {
 public:
  // Opens a regular file (links are followed). Codes from errno, with the path;
  // InvalidArgument when it is not a regular file. With `direct`, opens with
  // O_DIRECT: offsets, sizes and addresses must then be aligned as
  // lib/load/direct_io.h says.
  static absl::StatusOr<DataFile> Open(const std::string& path,
                                       bool direct = false);

  DataFile(DataFile&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        identity_(other.identity_) {}
  DataFile& operator=(DataFile&& other) noexcept;
  ~DataFile();

  // Fills `buffer` from `offset`. Interrupted and partial reads are continued;
  // the end of the file before the end of `buffer` is DataLoss with path,
  // offset, wanted and got.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> buffer) const;

  // Fills the buffers of `parts` one after the other from `offset`; at most
  // IOV_MAX go into one system call. `parts` is used as scratch space.
  absl::Status ReadScattered(uint64_t offset, absl::Span<iovec> parts) const;

  // Returns an error (Aborted) when the path no longer leads to the file as
  // Open() saw it.
  absl::Status CheckUnchanged() const;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  uint64_t size_bytes() const { return identity_.size_bytes; }

  // The error for a read that ended early; io_uring reads report it too.
  absl::Status ShortRead(uint64_t offset, uint64_t wanted, uint64_t got) const;

 private:
  DataFile(std::string path, int fd, FileIdentity identity)
      : path_(std::move(path)), fd_(fd), identity_(identity) {}

  std::string path_;
  int fd_ = -1;
  FileIdentity identity_;
};

}  // namespace firstframe

#endif  // LIB_LOAD_DATA_FILE_H_
