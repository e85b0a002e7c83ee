// What a trace says about a device and about regions: plain data.
//
// All times are nanoseconds of the trace's own clock.

#ifndef LIB_TRACE_TRACE_SUMMARY_H_
#define LIB_TRACE_TRACE_SUMMARY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {

// One device from its first work to its last. Definitions as in TraceLens'
// gpu_timeline, which the tests hold them equal to:
// - busy: the union of all its kernels, copies and memsets;
// - compute: the union of kernels and memsets that are not collectives;
// - exposed: collectives not hidden behind compute, copies not hidden behind
//   compute or collectives;
// - idle: total less busy.
struct GpuTimeline {
  int64_t device = 0;
  int64_t event_count = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  int64_t busy_ns = 0;
  int64_t compute_ns = 0;
  int64_t comm_ns = 0;
  int64_t copy_ns = 0;
  int64_t exposed_comm_ns = 0;
  int64_t exposed_copy_ns = 0;
  // The part of idle in which the work that ended the gap had not been launched
  // yet: the host was late. The rest is launch latency and dependencies.
  int64_t launch_bound_ns = 0;

  int64_t total_ns() const { return last_ns - first_ns; }
  int64_t idle_ns() const { return total_ns() - busy_ns; }
};

// Work of a device grouped by what it is and where it came from.
struct GpuWorkRow {
  std::string name;  // of the kernel, or "Memcpy HtoD (Host -> Device)"
  TraceEventKind kind = TraceEventKind::kKernel;
  std::string op;  // the innermost operator that launched it; may be empty
  int64_t device = 0;
  int64_t stream = 0;
  int64_t count = 0;
  int64_t total_ns = 0;
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  int64_t bytes = 0;        // of copies and memsets
  double deviation_ns = 0;  // standard deviation of one event
};

struct RegionSummary {
  std::string name;
  // Host side.
  int64_t count = 0;
  int64_t host_ns = 0;  // sum over entries
  int64_t min_ns = 0;
  int64_t max_ns = 0;
  double p50_ns = 0;
  double p95_ns = 0;
  int64_t launch_count = 0;
  // Device side: work launched inside the region, whenever it ran.
  int64_t gpu_event_count = 0;
  // Of those: launched by a thread that was in no region while another thread
  // of the process was in this one (a backward pass does that).
  int64_t by_time_count = 0;
  int64_t window_ns = 0;  // union of entry until both sides are done
  int64_t busy_ns = 0;    // union
  int64_t kernel_ns = 0;  // sum
  int64_t copy_ns = 0;    // sum
  int64_t memset_ns = 0;  // sum
  int64_t comm_ns = 0;    // sum, of kernel_ns
  int64_t launch_bound_ns = 0;
  double mad_ns = 0;  // median distance of the entries from their median
  // The union that window_ns measures, when asked for: start, end; in order.
  std::vector<std::pair<int64_t, int64_t>> windows;
  std::vector<GpuWorkRow> kernels;  // by total time, all streams together
  std::vector<GpuWorkRow> ops;      // name = operator

  int64_t idle_ns() const { return window_ns - busy_ns; }
};

struct TraceSummary {
  TraceFileInfo file;
  std::vector<GpuTimeline> devices;    // by device
  std::vector<RegionSummary> regions;  // by name
  std::vector<GpuWorkRow> work;        // by total time; op, device and stream
  int64_t host_op_count = 0;
  int64_t launch_count = 0;
  int64_t gpu_event_count = 0;
  int64_t gpu_outside_regions = 0;  // attributed to no region
  int64_t gpu_without_launch = 0;   // no launch of that correlation
  // Work of a device left out because its times cannot be: zero (Kineto writes
  // 0 for what it never saw), an end before the start, longer than a week
  // (CUPTI's overflow).
  int64_t dropped_zero_time = 0;
  int64_t dropped_negative = 0;
  int64_t dropped_overlong = 0;
  int64_t regions_over_limit = 0;  // region entries past the memory limit
  // Whether `regions` are named regions; else all annotations stand in.
  bool has_named_regions = false;
  bool spilled = false;  // the work was sorted on disk
};

// Classes of operators and kernels, as reports group them: "GEMM", "CONV",
// "NORM", "elementwise", "reduce", "triton", "attention", "copy", "comm",
// "other".
std::string WorkClass(const GpuWorkRow& row);

// Whether a kernel is a collective: its name says NCCL (or RCCL, which keeps
// the name).
bool IsCollective(absl::string_view kernel_name);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_SUMMARY_H_
