// Writes events of one trace to one or more others, carrying its metadata
// along.

#ifndef LIB_TRACE_TRACE_COPY_H_
#define LIB_TRACE_TRACE_COPY_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/trace/trace_file_writer.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_transform.h"

namespace firstframe {

// Thread-compatible.
class TraceCopy {
 public:
  // `keep` says which top-level members go along; all, without it.
  explicit TraceCopy(std::function<bool(absl::string_view)> keep = nullptr)
      : keep_(std::move(keep)) {}

  // Appends `json` to the trace at `path`, which is begun with the metadata
  // known so far. ResourceExhausted past 4,096 files.
  absl::Status Event(const std::string& path, const TraceFileInfo& info,
                     absl::string_view json);

  // Appends `json` (a name of a process) to every trace begun now or later.
  absl::Status EventForAll(absl::string_view json);

  // Ends all traces, with the metadata that came after the events. A trace of
  // no event is begun at `path` when none was, unless `path` is empty.
  absl::StatusOr<std::vector<WrittenTrace>> Finish(const std::string& path,
                                                   const TraceFileInfo& info);

 private:
  static constexpr size_t kMaxFiles = 4096;

  struct Target {
    std::unique_ptr<TraceFileWriter> writer;
    size_t metadata_count = 0;
  };

  absl::StatusOr<Target*> Begin(const std::string& path,
                                const TraceFileInfo& info);
  TraceMetadata Clean(const TraceFileInfo& info, size_t from) const;

  const std::function<bool(absl::string_view)> keep_;
  std::map<std::string, Target> targets_;
  std::vector<std::string> for_all_;
};

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_COPY_H_
