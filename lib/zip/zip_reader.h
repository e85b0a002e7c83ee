// Reads zip archives: stored and deflated members, zip64.

#ifndef LIB_ZIP_ZIP_READER_H_
#define LIB_ZIP_ZIP_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/file_reader.h"

namespace firstframe {

struct ZipMember {
  std::string name;  // as it is in the archive: never use it as a path
  uint16_t method = 0;
  uint32_t crc = 0;
  uint64_t compressed_size_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t header_offset = 0;
};

// Thread-safe.
class ZipReader {
 public:
  // Reads the directory. DataLoss with path and byte position when the file is
  // no sound archive.
  static absl::StatusOr<ZipReader> Open(const std::string& path);

  const std::vector<ZipMember>& members() const { return members_; }

  // Returns a member's bytes after checking size and CRC-32. DataLoss when they
  // differ; Unimplemented for other methods than stored and deflated;
  // ResourceExhausted over `max_size_bytes`.
  absl::StatusOr<std::string> Read(const ZipMember& member,
                                   uint64_t max_size_bytes) const;

 private:
  explicit ZipReader(std::unique_ptr<FileReader> file)
      : file_(std::move(file)) {}
  absl::StatusOr<std::string> ReadBytes(uint64_t offset, uint64_t size) const;
  absl::Status ReadDirectory();
  absl::Status Malformed(uint64_t position, absl::string_view found,
                         absl::string_view expected) const;

  std::unique_ptr<FileReader> file_;
  std::vector<ZipMember> members_;
};

}  // namespace firstframe

#endif  // LIB_ZIP_ZIP_READER_H_
