// Writes Chrome trace JSON in Kineto's form, event by event, to a file that
// appears whole.

#ifndef LIB_TRACE_TRACE_FILE_WRITER_H_
#define LIB_TRACE_TRACE_FILE_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/trace/gzip_file.h"

namespace firstframe {

// Top-level members: key and JSON value.
using TraceMetadata = std::vector<std::pair<std::string, std::string>>;

// Thread-compatible.
class TraceFileWriter {
 public:
  // ".gz" names are packed. Writes `head` and opens traceEvents.
  static absl::StatusOr<std::unique_ptr<TraceFileWriter>> Create(
      const std::string& path, const TraceMetadata& head);

  // Appends one event, an object of valid JSON.
  absl::Status Event(absl::string_view json);

  // Closes traceEvents, writes `tail` and moves the file to its name.
  absl::Status Finish(const TraceMetadata& tail);

  int64_t event_count() const { return count_; }
  const std::string& path() const { return path_; }

 private:
  TraceFileWriter(std::string path, std::unique_ptr<GzipFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  std::unique_ptr<GzipFile> file_;
  int64_t count_ = 0;
};

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_FILE_WRITER_H_
