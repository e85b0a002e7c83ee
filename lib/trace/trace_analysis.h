// The work behind AnalyzeTrace, in three steps: take in (trace_ingest.cc), find
// out what belongs to what (trace_attribution.cc), add up (trace_analyzer.cc).
// Private to those files.

#ifndef LIB_TRACE_TRACE_ANALYSIS_H_
#define LIB_TRACE_TRACE_ANALYSIS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/status_macros.h"
#include "lib/trace/interval_union.h"
#include "lib/trace/name_table.h"
#include "lib/trace/spill_sorter.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_summary.h"

namespace firstframe::trace_analysis {

inline constexpr uint32_t kNone = UINT32_MAX;
inline constexpr int64_t kWeekNs = int64_t{7} * 24 * 3600 * 1'000'000'000;
inline constexpr size_t kNameBytes = 16 << 20;
// Entries of regions kept one by one, for percentiles: 48 MiB.
inline constexpr size_t kMaxInstances = 1 << 20;

enum class HostType : uint8_t { kAnnotation, kOp, kLaunch };

struct HostSpan {
  int64_t start;
  int64_t end;
  uint64_t correlation;  // of a launch
  uint32_t thread;
  uint32_t name;
  HostType type;
};

// By thread and time, an enclosing span before what it encloses.
struct HostOrder {
  bool operator()(const HostSpan& a, const HostSpan& b) const {
    return std::tie(a.thread, a.start, b.end, a.type) <
           std::tie(b.thread, b.start, a.end, b.type);
  }
};

struct Launch {
  uint64_t correlation;
  int64_t start;
  int64_t end;
  uint32_t op;
  uint32_t instance;
  uint32_t thread;
};
struct LaunchOrder {
  bool operator()(const Launch& a, const Launch& b) const {
    return std::tie(a.correlation, a.start) < std::tie(b.correlation, b.start);
  }
};

struct GpuEvent {
  uint64_t correlation;
  int64_t start;
  int64_t end;
  int64_t bytes;
  int64_t launch_end;  // INT64_MIN: not known
  uint32_t name;
  uint32_t op;
  uint32_t lane;
  uint32_t instance;
  TraceEventKind kind;
  bool by_time;
};
struct GpuByCorrelation {
  bool operator()(const GpuEvent& a, const GpuEvent& b) const {
    return a.correlation < b.correlation;
  }
};
struct GpuByStart {
  bool operator()(const GpuEvent& a, const GpuEvent& b) const {
    return std::tie(a.start, a.end) < std::tie(b.start, b.end);
  }
};

// One entry of a region.
struct Instance {
  int64_t start;
  int64_t end;
  int64_t gpu_end;
  uint32_t region;  // name
  uint32_t parent;  // instance, or kNone
  uint32_t thread;
};

struct WorkKey {
  uint32_t op;
  uint32_t name;
  uint32_t lane;
  TraceEventKind kind;
  bool operator==(const WorkKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const WorkKey& key) {
    return H::combine(std::move(h), key.op, key.name, key.lane, key.kind);
  }
};
struct WorkTotals {
  int64_t count = 0;
  int64_t total = 0;
  int64_t min = INT64_MAX;
  int64_t max = 0;
  int64_t bytes = 0;
  // Welford's running variance: sums of squares of nanoseconds lose digits.
  double mean = 0;
  double squares = 0;

  void Add(int64_t duration, int64_t size) {
    ++count;
    const double delta = static_cast<double>(duration) - mean;
    mean += delta / static_cast<double>(count);
    squares += delta * (static_cast<double>(duration) - mean);
    total += duration;
    min = std::min(min, duration);
    max = std::max(max, duration);
    bytes += size;
  }
};

class TraceAnalysis {
 public:
  TraceAnalysis(TraceReader& reader, const TraceAnalyzerOptions& options)
      : reader_(reader),
        options_(options),
        names_(kNameBytes),
        host_(options.sort_bytes, options.temporary_folder),
        launches_(options.sort_bytes, options.temporary_folder),
        gpu_(options.sort_bytes, options.temporary_folder),
        timeline_(options.sort_bytes, options.temporary_folder) {}

  absl::StatusOr<TraceSummary> Run() {
    for (TraceEvent event;;) {
      FF_ASSIGN_OR_RETURN(const bool more, reader_.Next(&event));
      if (!more) break;
      FF_RETURN_IF_ERROR(Ingest(event));
    }
    FF_RETURN_IF_ERROR(CloseOpenSpans());
    summary_.file = reader_.info();
    FF_RETURN_IF_ERROR(SweepHost());
    FF_RETURN_IF_ERROR(JoinLaunches());
    FF_RETURN_IF_ERROR(SweepDevice());
    FinishRegions();
    FinishWork();
    summary_.spilled = host_.spilled() || gpu_.spilled() ||
                       launches_.spilled() || timeline_.spilled();
    return std::move(summary_);
  }

 private:
  struct RegionState {
    RegionSummary summary;
    IntervalUnion busy;
    std::vector<int64_t> durations;
    std::map<uint32_t, WorkTotals> kernels;
    std::map<uint32_t, WorkTotals> ops;
  };
  struct DeviceState {
    GpuTimeline timeline;
    IntervalUnion busy, compute, comm, copy, compute_or_comm;
  };
  struct Lane {
    int64_t device;
    int64_t stream;
  };

  absl::Status Ingest(const TraceEvent& event);
  absl::Status IngestGpu(const TraceEvent& event);
  absl::Status AddHost(const TraceEvent& event, HostType type, int64_t end);
  absl::Status CloseOpenSpans();
  absl::Status SweepHost();
  absl::Status JoinLaunches();
  absl::Status SweepDevice();
  void FinishRegions();
  void FinishWork();

  uint32_t ThreadOf(const TraceEvent& event) {
    const std::pair<int64_t, int64_t> key(event.pid, event.tid);
    const auto [found, added] =
        threads_.try_emplace(key, static_cast<uint32_t>(thread_pids_.size()));
    if (added) thread_pids_.push_back(event.pid);
    return found->second;
  }
  uint32_t LaneOf(int64_t device, int64_t stream) {
    const auto [found, added] = lane_ids_.try_emplace(
        std::make_pair(device, stream), static_cast<uint32_t>(lanes_.size()));
    if (added) lanes_.push_back({device, stream});
    return found->second;
  }
  // The name a region is summarised under, or kNone when it is none.
  uint32_t RegionOf(uint32_t annotation);
  uint32_t InstanceAt(int64_t time, int64_t pid) const;
  uint32_t PathOf(uint32_t instance);
  void AddToRegions(const GpuEvent& event);
  bool IsComm(uint32_t name) {
    if (name >= comm_.size()) comm_.resize(names_.size(), -1);
    if (comm_[name] < 0) comm_[name] = IsCollective(names_.Get(name));
    return comm_[name] != 0;
  }
  GpuWorkRow Row(const WorkKey& key, const WorkTotals& totals) const;

  TraceReader& reader_;
  const TraceAnalyzerOptions& options_;
  TraceSummary summary_;
  NameTable names_;
  SpillSorter<HostSpan, HostOrder> host_;
  SpillSorter<Launch, LaunchOrder> launches_;
  SpillSorter<GpuEvent, GpuByCorrelation> gpu_;
  SpillSorter<GpuEvent, GpuByStart> timeline_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint32_t> threads_;
  std::vector<int64_t> thread_pids_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint32_t> lane_ids_;
  std::vector<Lane> lanes_;
  std::vector<Instance> instances_;
  std::vector<uint32_t> by_start_;       // instances, in order of start
  std::vector<int64_t> max_end_before_;  // over by_start_, inclusive
  absl::flat_hash_map<uint32_t, uint32_t> region_of_;
  absl::flat_hash_map<uint32_t, uint32_t> path_of_;
  std::map<std::vector<uint32_t>, uint32_t> path_ids_;
  std::vector<std::vector<uint32_t>> paths_ = {{}};  // 0: in no region
  std::map<uint32_t, RegionState> regions_;
  std::map<int64_t, DeviceState> devices_;
  absl::flat_hash_map<WorkKey, WorkTotals> work_;
  std::vector<int8_t> comm_;
  struct OpenSpan {
    HostSpan span;
    bool is_span;
  };
  absl::flat_hash_map<uint32_t, std::vector<OpenSpan>> open_;
  int64_t last_time_ = INT64_MIN;
};

}  // namespace firstframe::trace_analysis

#endif  // LIB_TRACE_TRACE_ANALYSIS_H_
