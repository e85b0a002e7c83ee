// A file held open for positioned reads, with errors that say where.

#ifndef LIB_LOAD_FILE_READER_H_
#define LIB_LOAD_FILE_READER_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace firstframe {

// Identity of a file's contents as far as stat() tells: a file that was
// rewritten, truncated or replaced between two looks differs.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Movable. Reads are thread-safe: they carry their own offsets.
class FileReader {
 public:
  // Opens a regular file (links are followed). Codes from errno, with the path;
  // InvalidArgument when it is not a regular file. With `direct`, opens with
  // O_DIRECT: offsets, sizes and addresses must then be aligned as
  // lib/load/direct_io.h says.
  static absl::StatusOr<FileReader> Open(const std::string& path,
                                         bool direct = false);

  FileReader(FileReader&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        identity_(other.identity_) {}
  FileReader& operator=(FileReader&& other) noexcept;
  ~FileReader();

  // Fills `buffer` from `offset`. Interrupted and partial reads are continued;
  // the end of the file before the end of `buffer` is DataLoss with path,
  // offset, wanted and got.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> buffer) const;

  // Fills the buffers of `parts` one after the other from `offset`; at most
  // IOV_MAX go into one system call. `parts` is used as scratch space.
  absl::Status ReadScattered(uint64_t offset, absl::Span<iovec> parts) const;

  // Returns an error (Aborted) when the open file, or what `path` now names, is
  // no longer what Open() saw.
  absl::Status CheckUnchanged() const;

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  const FileIdentity& identity() const { return identity_; }
  uint64_t size_bytes() const { return identity_.size_bytes; }

  // The error for a read that ended early; io_uring reads report it too.
  absl::Status ShortRead(uint64_t offset, uint64_t wanted, uint64_t got) const;

 private:
  FileReader(std::string path, int fd, FileIdentity identity)
      : path_(std::move(path)), fd_(fd), identity_(identity) {}

  std::string path_;
  int fd_ = -1;
  FileIdentity identity_;
};

}  // namespace firstframe

#endif  // LIB_LOAD_FILE_READER_H_
