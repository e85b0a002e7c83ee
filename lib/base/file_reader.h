// Positioned reads from one open file, by pread or out of a mapping, with the
// same errors either way and none of them fatal: a file that is cut while it is
// open gives a short read, not SIGBUS.

#ifndef LIB_BASE_FILE_READER_H_
#define LIB_BASE_FILE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace firstframe {

// What tells one state of a file from another without reading it.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;  // since the epoch

  bool operator==(const FileIdentity&) const = default;
};

struct RegularFile;

enum class ReadMethod {
  kPread,
  // Copies from a shared mapping, guarded (lib/base/sigbus_guard.h). Falls back
  // to pread on network file systems, where a fault can hang, and where the
  // file cannot be mapped.
  kMmap,
};

// Immovable; thread-safe but for the destructor.
class FileReader {
 public:
  // Opens `path` for reading, following links. Codes from errno (NotFound,
  // PermissionDenied, ...); InvalidArgument when it is not a regular file.
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(
      const std::string& path, ReadMethod method = ReadMethod::kPread);

  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Fills `target` from byte `offset`. DataLoss when the file ends first, with
  // path, offset, the bytes wanted and got; errno's code when reading fails.
  absl::Status Read(uint64_t offset, absl::Span<std::byte> target) const;

  // FailedPrecondition when the path no longer leads to the file as it was at
  // Open: another size, modification time or inode, or no file at all.
  absl::Status CheckUnchanged() const;

  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  uint64_t size_bytes() const { return identity_.size_bytes; }
  int fd() const { return fd_; }

  // The method in use, and why it is not the one asked for (else empty).
  ReadMethod method() const {
    return mapping_ == nullptr ? ReadMethod::kPread : ReadMethod::kMmap;
  }
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  FileReader(std::string path, const RegularFile& file);
  void Map();

  const std::string path_;
  const int fd_;
  const FileIdentity identity_;
  const std::byte* mapping_ = nullptr;
  std::string fallback_reason_;
};

// Returns the identity of the file that `path` leads to. Codes from errno.
absl::StatusOr<FileIdentity> GetFileIdentity(const std::string& path);

// What FileReader is made of, for readers of another kind
// (lib/load/data_file.h): Open(), with `flags` (O_DIRECT) added; the caller
// closes `fd`.
struct RegularFile {
  int fd = -1;
  FileIdentity identity;
};
absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path,
                                            int flags = 0);

// CheckUnchanged() of a file that was `before` when it was opened.
absl::Status CheckFileUnchanged(const std::string& path,
                                const FileIdentity& before);

// DataLoss: a read of `wanted` bytes at `offset` got `got` before the file's
// end.
absl::Status ShortReadError(const std::string& path, uint64_t offset,
                            uint64_t wanted, uint64_t got);

// Returns whether `fd` is on a network file system (NFS, Lustre, SMB, Ceph,
// GPFS, BeeGFS, FUSE, ...), by statfs.
bool IsOnNetworkFileSystem(int fd);

// Fills `target` by calling `pread(data, size, offset)` as often as it takes:
// goes on after EINTR and short reads, and asks for at most 0x7ffff000 bytes at
// a time, which is all that Linux gives. Errors as FileReader::Read.
absl::Status ReadFully(
    absl::FunctionRef<int64_t(std::byte* data, size_t size, uint64_t offset)>
        pread,
    const std::string& path, uint64_t offset, absl::Span<std::byte> target);

}  // namespace firstframe

#endif  // LIB_BASE_FILE_READER_H_
