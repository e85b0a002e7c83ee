// Writes zip archives of stored (uncompressed) members: .npz and .pt files.

#ifndef LIB_ZIP_ZIP_WRITER_H_
#define LIB_ZIP_ZIP_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/base/output_file.h"

namespace firstframe {

// Format: APPNOTE.TXT 6.3.9 (PKWARE), zip64 where a size or an offset needs it.
// Members carry the date 1980-01-01, so that equal contents give equal bytes.
// Movable, thread-compatible; the archive appears at Finish().
class ZipWriter {
 public:
  // Errno's codes from OutputFile.
  static absl::StatusOr<ZipWriter> Create(const std::string& path);

  // Adds `bytes` as `name`, beginning at a multiple of `alignment` (a power of
  // two up to 32768) in the file. InvalidArgument for a name that is empty,
  // over 65535 bytes or there already.
  absl::Status Add(absl::string_view name, absl::Span<const std::byte> bytes,
                   size_t alignment = 1);
  absl::Status Add(absl::string_view name, absl::string_view text,
                   size_t alignment = 1) {
    return Add(
        name,
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()),
                            text.size()),
        alignment);
  }

  // Writes the directory and moves the file to its name. Call once, last.
  absl::Status Finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0;
    uint64_t size_bytes = 0;
    uint64_t offset = 0;  // of its local header
  };
  explicit ZipWriter(OutputFile file) : file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes);

  OutputFile file_;
  uint64_t position_ = 0;
  std::vector<Member> members_;
};

}  // namespace firstframe

#endif  // LIB_ZIP_ZIP_WRITER_H_
