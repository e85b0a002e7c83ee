// Turns a trace into a summary in one pass over the file and constant memory.
//
// Work of a device belongs to the region its launch was made in: the launch is
// found by correlation id, the region by the spans open on the launching thread
// at that time. A launch on a thread with no region open belongs to the
// innermost region open on another thread of the same process.

#ifndef LIB_TRACE_TRACE_ANALYZER_H_
#define LIB_TRACE_TRACE_ANALYZER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_summary.h"

namespace firstframe {

struct TraceAnalyzerOptions {
  // Regions whose names match are summarised; empty: all.
  std::string region_glob = {};
  // Count every annotation as a region, named regions or not.
  bool all_annotations = false;
  // Ignore what starts before or ends after; times of the trace.
  int64_t since_ns = INT64_MIN;
  int64_t until_ns = INT64_MAX;
  // Fill RegionSummary::windows.
  bool keep_windows = false;
  // Rows kept in each region's kernels and ops.
  size_t top = 20;
  // Memory for records of each of the sorts; beyond it they go to
  // `temporary_folder`.
  size_t sort_bytes = 12 << 20;
  std::string temporary_folder = "/tmp";
};

// Reads `reader` to its end. Errors of reading, or ResourceExhausted when a
// large trace cannot be sorted on disk.
absl::StatusOr<TraceSummary> AnalyzeTrace(TraceReader& reader,
                                          const TraceAnalyzerOptions& options);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_ANALYZER_H_
