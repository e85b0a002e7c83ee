// A file that is written packed or plain, by its name, and appears whole.

#ifndef LIB_TRACE_GZIP_FILE_H_
#define LIB_TRACE_GZIP_FILE_H_

#include <zlib.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/output_file.h"

namespace firstframe {

// Names that end in ".gz" are packed. Thread-compatible.
class GzipFile {
 public:
  // Opens a temporary neighbour of `path`; codes as OutputFile::Create.
  static absl::StatusOr<std::unique_ptr<GzipFile>> Create(
      const std::string& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Appends; buffered.
  absl::Status Write(absl::string_view data);

  // Writes what is left and moves the file to its name. Call once, last.
  absl::Status Commit();

 private:
  GzipFile(OutputFile file, bool packed);
  absl::Status Drain(int flush);

  OutputFile file_;
  const bool packed_;
  std::string pending_;
  std::string packed_bytes_;
  z_stream stream_ = {};
};

}  // namespace firstframe

#endif  // LIB_TRACE_GZIP_FILE_H_
