// The file that trace records go to.

#ifndef LIB_ACTIVATION_TRACE_SINK_H_
#define LIB_ACTIVATION_TRACE_SINK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace firstframe {

// Returns `pattern` with every "<pid>" replaced.
std::string ExpandTracePath(absl::string_view pattern, int64_t pid);

// Appends lines to a file, each in one write(2), so that ranks which share one
// path do not interleave within a line. Thread-safe.
class TraceSink {
 public:
  // Opens `path` for appending; makes its folder. Codes from errno.
  static absl::StatusOr<std::unique_ptr<TraceSink>> Open(
      const std::string& path);
  ~TraceSink();
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;

  // Writes `line` and a line end. After the first failure nothing more is
  // written and every call returns that failure: a full disk must not fill a
  // log with complaints, nor leave holes in the file.
  absl::Status Write(absl::string_view line);

  const std::string& path() const { return path_; }

 private:
  TraceSink(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_SINK_H_
