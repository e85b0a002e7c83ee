// Reads VIDEOX_PERF records, ours and the original's, at disk speed.

#ifndef LIB_METRICS_PERF_RECORD_READER_H_
#define LIB_METRICS_PERF_RECORD_READER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/metrics/perf_record.h"

namespace firstframe {

enum class PerfRecordKind {
  kRequest,
  kTrainWindow,
  kOther,  // an object of another kind, or of none
};

// Parses one line at a time and keeps the memory of the last one for the next:
// no allocation in the steady state. Thread-compatible.
//
// Unknown keys are ignored, in any order; a number that is null or one of
// Python's NaN and Infinity counts as absent, and absent ones keep their
// defaults. A known key of the wrong type is an error.
class PerfRecordParser {
 public:
  PerfRecordParser();
  ~PerfRecordParser();

  // `line` must be followed by a readable byte, as JsonlReader's lines are.
  // InvalidArgument with the reason when it is not
  // one JSON object with the right types.
  absl::StatusOr<PerfRecordKind> Parse(absl::string_view line);

  // The record of the last Parse() that returned that kind.
  const RequestRecord& request() const;
  const TrainWindowRecord& train_window() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_RECORD_READER_H_
