// A file that appears whole or not at all: bytes go to a file that has no name,
// or a temporary one where the file system knows no others, and that replaces
// the target at Commit().

#ifndef LIB_BASE_OUTPUT_FILE_H_
#define LIB_BASE_OUTPUT_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

// Movable, thread-compatible. Without Commit() the destructor removes the
// temporary file and leaves the target as it was; so does a signal that ends
// the process, where the file has no name. A target that exists and is
// not a regular file (a pipe, /dev/stdout, /dev/full) is written directly.
class OutputFile {
 public:
  // Creates the file in `path`'s folder, so that a folder that is
  // missing or read-only is an error before any work is done. Codes from errno
  // (NotFound, PermissionDenied, ...), with the path in the message. An
  // existing file's permission bits are kept, else 0666 less the umask.
  static absl::StatusOr<OutputFile> Create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Appends `data`, unbuffered; short writes and EINTR are retried. DataLoss or
  // ResourceExhausted (no space) with path and errno text.
  absl::Status Write(absl::string_view data);

  // Writes at `offset` without moving the append position.
  absl::Status WriteAt(size_t offset, absl::string_view data);

  // Closes the file and moves it to its name. With `sync`, the data reaches the
  // disk first (fsync). Call once, last.
  absl::Status Commit(bool sync = false);

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  OutputFile(std::string path, bool is_direct, std::string temporary, int fd)
      : path_(std::move(path)),
        is_direct_(is_direct),
        temporary_(std::move(temporary)),
        fd_(fd) {}
  void Discard();
  // Gives a file without a name a temporary one.
  absl::Status Link();

  std::string path_;
  bool is_direct_ = false;  // written in place, nothing to replace
  std::string temporary_;   // empty: has no name
  int fd_ = -1;
};

// Writes `contents` to `path`, whole or not at all: Create, Write, Commit.
absl::Status WriteOutputFile(const std::string& path,
                             absl::string_view contents);

}  // namespace firstframe

#endif  // LIB_BASE_OUTPUT_FILE_H_
