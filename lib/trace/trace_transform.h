// Makes traces out of traces: repaired, split, merged, redacted. All stream.
//
// Outputs are strict JSON in Kineto's form (".gz" names are packed), also when
// the input is a Perfetto trace.

#ifndef LIB_TRACE_TRACE_TRANSFORM_H_
#define LIB_TRACE_TRACE_TRANSFORM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

struct WrittenTrace {
  std::string path;
  int64_t event_count = 0;
};

// Copies every event of `input` that can be read as strict JSON.
absl::StatusOr<WrittenTrace> RepairTrace(const std::string& input,
                                         const std::string& output);

// Copies `input` without what names people or machines: host and user names,
// log lines, folders of paths, call stacks, text inputs, annotations that are
// neither regions nor steps (those become "annotation-" and a number, the same
// for the same text).
absl::StatusOr<WrittenTrace> RedactTrace(const std::string& input,
                                         const std::string& output);

enum class TraceSplit { kTime, kRegion, kRank };

struct TraceSplitOptions {
  TraceSplit by = TraceSplit::kTime;
  int64_t window_ns = 1'000'000'000;  // of kTime
  std::string region_glob = {};       // of kRegion; empty: all
  std::string temporary_folder = "/tmp";
};

// Writes parts of `input` (not standard input: it is read twice) beside each
// other: `stem`.t0003.json.gz, `stem`.decode.json.gz, `stem`.rank1.json.gz.
// - kTime: an event goes to the window it starts in, counted from the first.
// - kRegion: an event goes to each region that its time touches, from a
//   region's entry until the work it launched is done.
// - kRank: parts of a trace that MergeTraces made.
// Names of processes and threads go to every part. ResourceExhausted when there
// would be more than 4,096 parts.
absl::StatusOr<std::vector<WrittenTrace>> SplitTrace(
    const std::string& input, const std::string& stem,
    const TraceSplitOptions& options);

enum class TraceAlign {
  kClock,  // by baseTimeNanoseconds; a trace without one counts from 0
  kStart,  // every trace's first event at the same time
};

// Puts `inputs` on one timeline. Processes, devices, flows and correlations of
// different inputs are kept apart: process ids become
// kMergePidStride * (index + 1) + id, ids and correlations get the index in
// their upper bits. Process labels say which rank (else which file) is which.
// Reads every input twice.
absl::StatusOr<WrittenTrace> MergeTraces(const std::vector<std::string>& inputs,
                                         const std::string& output,
                                         TraceAlign align);

inline constexpr int64_t kMergePidStride = 10'000'000;

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_TRANSFORM_H_
