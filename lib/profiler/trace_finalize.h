// Turns what a session streamed into the files that people open.

#ifndef LIB_PROFILER_TRACE_FINALIZE_H_
#define LIB_PROFILER_TRACE_FINALIZE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/trace_summary.h"

namespace firstframe {

struct FinalizedProfile {
  std::string stem;
  std::string trace_path;    // STEM.pt.trace.json.gz
  std::string stream_path;   // STEM.pftrace
  std::string summary_path;  // DIR/summary_rank{R}.txt
  bool finished = false;     // the process ended in order
  int64_t rank = 0;
  std::string process_name;
  int64_t pid = 0;
  TraceSummary summary;
  // From the session's own account; 0 when it was killed before writing one.
  int64_t span_count = 0, kernel_count = 0, copy_count = 0, api_count = 0;
  int64_t outside_count = 0, dropped_count = 0;
  double overhead_ns = 0;
  double span_cost_ns = 0;
  int64_t wall_ns = 0;
  std::string cupti;
  // By region, where CUDA events stood in for CUPTI.
  std::map<std::string, int64_t> cuda_event_ns;
  std::vector<std::string> messages;
};

struct FinalizeOptions {
  std::string steps;  // KinetoHeader::steps; empty: its default
  // Ranks whose summary another process has: this one's is called
  // summary_rank{R}_{PID}.
  std::set<int64_t> taken_ranks;
};

// Reads STEM.pftrace and STEM.meta.json and writes STEM.pt.trace.json.gz, as
// Kineto writes it (device properties, distributedInfo, flows from launches to
// their work), and summary_rank{R}.txt and .json beside it, as FastVideo's
// profiler does. Each file appears whole. Works on what a killed process left.
absl::StatusOr<FinalizedProfile> FinalizeProfile(
    const std::string& stem, const FinalizeOptions& options = {});

// Returns the stems of sessions in `dir`, those whose files are newer than
// `since_ns` (CLOCK_REALTIME), in order of name.
std::vector<std::string> FindProfiles(const std::string& dir, int64_t since_ns);

}  // namespace firstframe

#endif  // LIB_PROFILER_TRACE_FINALIZE_H_
