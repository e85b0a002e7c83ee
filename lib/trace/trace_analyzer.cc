#include "lib/trace/trace_analyzer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "lib/base/glob.h"
#include "lib/base/status_macros.h"
#include "lib/regions/region.h"
#include "lib/trace/interval_union.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/name_table.h"
#include "lib/trace/spill_sorter.h"

namespace firstframe {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr int64_t kWeekNs = int64_t{7} * 24 * 3600 * 1'000'000'000;
constexpr size_t kNameBytes = 16 << 20;
// Entries of regions kept one by one, for percentiles: 48 MiB.
constexpr size_t kMaxInstances = 1 << 20;

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

uint64_t ArgUint(absl::string_view value) {
  uint64_t number = 0;
  int64_t signed_number = 0;
  value = UnquoteJson(value);
  if (absl::SimpleAtoi(value, &number)) return number;
  if (absl::SimpleAtoi(value, &signed_number)) {
    return static_cast<uint64_t>(signed_number);
  }
  return 0;
}

// Linear between the two nearest ranks, as numpy does by default.
double Percentile(const std::vector<int64_t>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<size_t>(rank);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  const double weight = rank - static_cast<double>(low);
  return static_cast<double>(sorted[low]) * (1 - weight) +
         static_cast<double>(sorted[high]) * weight;
}

class Analyzer {
 public:
  Analyzer(TraceReader& reader, const TraceAnalyzerOptions& options)
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

absl::Status Analyzer::Ingest(const TraceEvent& event) {
  if (event.phase == 'E') {
    std::vector<OpenSpan>& stack = open_[ThreadOf(event)];
    if (stack.empty()) return absl::OkStatus();
    OpenSpan open = stack.back();
    stack.pop_back();
    open.span.end = event.time_ns;
    return open.is_span ? host_.Add(open.span) : absl::OkStatus();
  }
  if (event.phase != 'X' && event.phase != 'B') return absl::OkStatus();
  if (!event.has_time) return absl::OkStatus();
  if (IsGpuWork(event.kind)) return IngestGpu(event);
  HostType type;
  switch (event.kind) {
    case TraceEventKind::kUserAnnotation:
      type = HostType::kAnnotation;
      break;
    case TraceEventKind::kCpuOp:
      type = HostType::kOp;
      ++summary_.host_op_count;
      break;
    case TraceEventKind::kRuntime:
    case TraceEventKind::kDriver:
      type = HostType::kLaunch;
      break;
    case TraceEventKind::kOther:
      // Other tracers' spans may be regions; nothing else of them matters.
      if (event.phase == 'B' ||
          absl::StartsWith(event.name, kRegionSpanPrefix)) {
        type = HostType::kAnnotation;
        break;
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
  if (event.duration_ns < 0) return absl::OkStatus();
  if (event.time_ns < options_.since_ns || event.end_ns() > options_.until_ns) {
    return absl::OkStatus();
  }
  last_time_ = std::max(last_time_, event.end_ns());
  return AddHost(event, type, event.end_ns());
}

absl::Status Analyzer::AddHost(const TraceEvent& event, HostType type,
                               int64_t end) {
  HostSpan span = {.start = event.time_ns,
                   .end = end,
                   .correlation = 0,
                   .thread = ThreadOf(event),
                   .name = 0,
                   .type = type};
  if (type == HostType::kLaunch) {
    span.correlation = ArgUint(FindJsonValue(event.args, "correlation"));
    if (span.correlation == 0) return absl::OkStatus();
  } else {
    span.name = event.name_is_escaped
                    ? names_.Intern(DecodeJsonString(event.name))
                    : names_.Intern(event.name);
  }
  if (event.phase == 'B') {
    open_[span.thread].push_back({span, type != HostType::kLaunch});
    return absl::OkStatus();
  }
  return host_.Add(span);
}

// Spans that were open when the trace ended last until then.
absl::Status Analyzer::CloseOpenSpans() {
  for (auto& [thread, stack] : open_) {
    for (OpenSpan& open : stack) {
      open.span.end = std::max(open.span.start, last_time_);
      if (open.is_span) FF_RETURN_IF_ERROR(host_.Add(open.span));
    }
  }
  open_.clear();
  return absl::OkStatus();
}

absl::Status Analyzer::IngestGpu(const TraceEvent& event) {
  if (event.time_ns == 0 && event.duration_ns == 0) {
    ++summary_.dropped_zero_time;
    return absl::OkStatus();
  }
  if (event.duration_ns < 0) {
    ++summary_.dropped_negative;
    return absl::OkStatus();
  }
  if (event.duration_ns > kWeekNs) {
    ++summary_.dropped_overlong;
    return absl::OkStatus();
  }
  if (event.time_ns < options_.since_ns || event.end_ns() > options_.until_ns) {
    return absl::OkStatus();
  }
  GpuEvent record = {.correlation = 0,
                     .start = event.time_ns,
                     .end = event.end_ns(),
                     .bytes = 0,
                     .launch_end = INT64_MIN,
                     .name = 0,
                     .op = 0,
                     .lane = 0,
                     .instance = kNone,
                     .kind = event.kind,
                     .by_time = false};
  int64_t device = event.pid, stream = event.tid;
  JsonOddities ignored;
  VisitJsonObject(event.args, &ignored,
                  [&](absl::string_view key, absl::string_view value) {
                    if (key == "correlation") {
                      record.correlation = ArgUint(value);
                    } else if (key == "device") {
                      device = static_cast<int64_t>(ArgUint(value));
                    } else if (key == "stream") {
                      stream = static_cast<int64_t>(ArgUint(value));
                    } else if (key == "bytes") {
                      record.bytes = static_cast<int64_t>(ArgUint(value));
                    }
                    return true;
                  });
  record.lane = LaneOf(device, stream);
  record.name = event.name_is_escaped
                    ? names_.Intern(DecodeJsonString(event.name))
                    : names_.Intern(event.name);
  ++summary_.gpu_event_count;
  last_time_ = std::max(last_time_, record.end);
  return gpu_.Add(record);
}

uint32_t Analyzer::RegionOf(uint32_t annotation) {
  const auto [found, added] = region_of_.try_emplace(annotation, kNone);
  if (!added) return found->second;
  const std::string& name = names_.Get(annotation);
  std::string shown;
  if (absl::StartsWith(name, kRegionSpanPrefix)) {
    shown = ShortRegionName(name);
  } else if (options_.all_annotations || !summary_.has_named_regions) {
    // Steps are one region however many there are.
    shown = absl::StartsWith(name, "ProfilerStep#") ? "ProfilerStep" : name;
    if (absl::StartsWith(name, "fastvideo.profiler.")) shown.clear();
  }
  if (!options_.region_glob.empty() && !shown.empty() &&
      !GlobMatch(options_.region_glob, shown)) {
    shown.clear();
  }
  const uint32_t region = shown.empty() ? kNone : names_.Intern(shown);
  region_of_[annotation] = region;
  return region;
}

// Walks each thread's spans with a stack: what is open when a launch is made.
absl::Status Analyzer::SweepHost() {
  for (uint32_t id = 1; id < names_.size(); ++id) {
    if (absl::StartsWith(names_.Get(id), kRegionSpanPrefix)) {
      summary_.has_named_regions = true;
    }
  }
  FF_RETURN_IF_ERROR(host_.Sort());
  struct Open {
    int64_t end;
    uint32_t op;        // the innermost operator, this one included
    uint32_t instance;  // likewise
  };
  std::vector<Open> stack;
  uint32_t thread = kNone;
  for (HostSpan span; host_.Next(&span);) {
    if (span.thread != thread) {
      thread = span.thread;
      stack.clear();
    }
    // Ends are exclusive: a span that starts where another ends follows it.
    while (!stack.empty() && stack.back().end <= span.start) {
      // An empty span at the very end of its parent is still inside.
      if (stack.back().end == span.start && span.end == span.start) break;
      stack.pop_back();
    }
    const uint32_t op = stack.empty() ? 0 : stack.back().op;
    const uint32_t instance = stack.empty() ? kNone : stack.back().instance;
    switch (span.type) {
      case HostType::kLaunch:
        ++summary_.launch_count;
        for (const uint32_t region : paths_[PathOf(instance)]) {
          ++regions_[region].summary.launch_count;
        }
        FF_RETURN_IF_ERROR(launches_.Add({.correlation = span.correlation,
                                          .start = span.start,
                                          .end = span.end,
                                          .op = op,
                                          .instance = instance,
                                          .thread = span.thread}));
        break;
      case HostType::kOp:
        stack.push_back({span.end, span.name, instance});
        break;
      case HostType::kAnnotation: {
        const uint32_t region = RegionOf(span.name);
        if (region == kNone) break;
        if (instances_.size() >= kMaxInstances) {
          ++summary_.regions_over_limit;
          break;
        }
        instances_.push_back({.start = span.start,
                              .end = span.end,
                              .gpu_end = span.end,
                              .region = region,
                              .parent = instance,
                              .thread = span.thread});
        stack.push_back(
            {span.end, op, static_cast<uint32_t>(instances_.size() - 1)});
        break;
      }
    }
  }
  FF_RETURN_IF_ERROR(host_.status());
  by_start_.resize(instances_.size());
  for (uint32_t i = 0; i < by_start_.size(); ++i) by_start_[i] = i;
  std::sort(by_start_.begin(), by_start_.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(instances_[a].start, a) < std::tie(instances_[b].start, b);
  });
  int64_t max_end = INT64_MIN;
  for (const uint32_t i : by_start_) {
    max_end = std::max(max_end, instances_[i].end);
    max_end_before_.push_back(max_end);
  }
  return absl::OkStatus();
}

// The region entered last among those of the process open at `time`.
uint32_t Analyzer::InstanceAt(int64_t time, int64_t pid) const {
  const auto after = std::upper_bound(
      by_start_.begin(), by_start_.end(), time,
      [&](int64_t t, uint32_t i) { return t < instances_[i].start; });
  for (auto it = after; it != by_start_.begin();) {
    --it;
    if (max_end_before_[it - by_start_.begin()] <= time) break;
    const Instance& instance = instances_[*it];
    if (instance.end > time && thread_pids_[instance.thread] == pid) {
      return *it;
    }
  }
  return kNone;
}

// Joins the device's work with its launches, both in order of correlation.
absl::Status Analyzer::JoinLaunches() {
  FF_RETURN_IF_ERROR(launches_.Sort());
  FF_RETURN_IF_ERROR(gpu_.Sort());
  Launch launch;
  bool has_launch = launches_.Next(&launch);
  // The launch in hand, kept for all work of one correlation (graphs).
  Launch current = {};
  bool has_current = false;
  for (GpuEvent event; gpu_.Next(&event);) {
    while (has_launch && launch.correlation <= event.correlation) {
      // Of a runtime call and the driver call inside it, the first.
      if (!has_current || current.correlation != launch.correlation) {
        current = launch;
        has_current = true;
      }
      has_launch = launches_.Next(&launch);
    }
    if (event.correlation != 0 && has_current &&
        current.correlation == event.correlation) {
      event.op = current.op;
      event.launch_end = current.end;
      event.instance = current.instance;
      if (event.instance == kNone) {
        event.instance =
            InstanceAt(current.start, thread_pids_[current.thread]);
        event.by_time = event.instance != kNone;
      }
    } else {
      ++summary_.gpu_without_launch;
    }
    if (event.instance == kNone) ++summary_.gpu_outside_regions;
    FF_RETURN_IF_ERROR(timeline_.Add(event));
  }
  FF_RETURN_IF_ERROR(launches_.status());
  return gpu_.status();
}

// The distinct regions an instance lies in, as a number.
uint32_t Analyzer::PathOf(uint32_t instance) {
  if (instance == kNone) return 0;
  const auto [found, added] = path_of_.try_emplace(instance, 0);
  if (!added) return found->second;
  std::vector<uint32_t> path;
  for (uint32_t i = instance; i != kNone; i = instances_[i].parent) {
    path.push_back(instances_[i].region);
  }
  std::sort(path.begin(), path.end());
  path.erase(std::unique(path.begin(), path.end()), path.end());
  const auto [known, is_new] =
      path_ids_.try_emplace(path, static_cast<uint32_t>(paths_.size()));
  if (is_new) paths_.push_back(std::move(path));
  path_of_[instance] = known->second;
  return known->second;
}

void Analyzer::AddToRegions(const GpuEvent& event) {
  const int64_t duration = event.end - event.start;
  for (uint32_t i = event.instance; i != kNone; i = instances_[i].parent) {
    instances_[i].gpu_end = std::max(instances_[i].gpu_end, event.end);
  }
  for (const uint32_t name : paths_[PathOf(event.instance)]) {
    RegionState& region = regions_[name];
    RegionSummary& summary = region.summary;
    ++summary.gpu_event_count;
    summary.by_time_count += event.by_time;
    if (!region.busy.empty() && event.launch_end != INT64_MIN) {
      const int64_t gap_start = region.busy.covered_to();
      // Only gaps inside one entry count: between entries nothing is due.
      const int64_t begin =
          std::max(gap_start, instances_[event.instance].start);
      summary.launch_bound_ns += std::clamp<int64_t>(
          std::min(event.launch_end, event.start) - begin, 0, INT64_MAX);
    }
    region.busy.Add(event.start, event.end);
    switch (event.kind) {
      case TraceEventKind::kMemcpy:
        summary.copy_ns += duration;
        break;
      case TraceEventKind::kMemset:
        summary.memset_ns += duration;
        break;
      default:
        summary.kernel_ns += duration;
        if (IsComm(event.name)) summary.comm_ns += duration;
    }
    region.kernels[event.name].Add(duration, event.bytes);
    region.ops[event.op].Add(duration, event.bytes);
  }
}

absl::Status Analyzer::SweepDevice() {
  FF_RETURN_IF_ERROR(timeline_.Sort());
  for (GpuEvent event; timeline_.Next(&event);) {
    const int64_t duration = event.end - event.start;
    DeviceState& device = devices_[lanes_[event.lane].device];
    ++device.timeline.event_count;
    if (!device.busy.empty() && event.start > device.busy.covered_to() &&
        event.launch_end != INT64_MIN) {
      device.timeline.launch_bound_ns += std::clamp<int64_t>(
          std::min(event.launch_end, event.start) - device.busy.covered_to(), 0,
          INT64_MAX);
    }
    device.busy.Add(event.start, event.end);
    if (event.kind == TraceEventKind::kMemcpy) {
      device.copy.Add(event.start, event.end);
    } else {
      const bool comm = IsComm(event.name);
      (comm ? device.comm : device.compute).Add(event.start, event.end);
      device.compute_or_comm.Add(event.start, event.end);
    }
    device.timeline.last_ns =
        device.timeline.event_count == 1
            ? event.end
            : std::max(device.timeline.last_ns, event.end);
    if (event.instance != kNone) AddToRegions(event);
    work_[{.op = event.op,
           .name = event.name,
           .lane = event.lane,
           .kind = event.kind}]
        .Add(duration, event.bytes);
  }
  FF_RETURN_IF_ERROR(timeline_.status());
  for (auto& [id, device] : devices_) {
    GpuTimeline& timeline = device.timeline;
    timeline.device = id;
    timeline.first_ns = device.busy.first();
    timeline.busy_ns = device.busy.length();
    timeline.compute_ns = device.compute.length();
    timeline.comm_ns = device.comm.length();
    timeline.copy_ns = device.copy.length();
    timeline.exposed_comm_ns =
        device.compute_or_comm.length() - device.compute.length();
    timeline.exposed_copy_ns =
        device.busy.length() - device.compute_or_comm.length();
    summary_.devices.push_back(timeline);
  }
  return absl::OkStatus();
}

void Analyzer::FinishRegions() {
  std::map<uint32_t, IntervalUnion> windows;
  for (const uint32_t i : by_start_) {
    const Instance& instance = instances_[i];
    RegionState& region = regions_[instance.region];
    const int64_t duration = instance.end - instance.start;
    ++region.summary.count;
    region.summary.host_ns += duration;
    region.durations.push_back(duration);
    const int64_t done = std::max(instance.end, instance.gpu_end);
    windows[instance.region].Add(instance.start, done);
    if (!options_.keep_windows) continue;
    auto& kept = region.summary.windows;
    if (!kept.empty() && instance.start <= kept.back().second) {
      kept.back().second = std::max(kept.back().second, done);
    } else {
      kept.emplace_back(instance.start, done);
    }
  }
  const auto top = [&](const std::map<uint32_t, WorkTotals>& totals) {
    std::vector<GpuWorkRow> rows;
    for (const auto& [name, total] : totals) {
      rows.push_back(Row({.op = 0,
                          .name = name,
                          .lane = kNone,
                          .kind = TraceEventKind::kKernel},
                         total));
    }
    std::sort(
        rows.begin(), rows.end(), [](const GpuWorkRow& a, const GpuWorkRow& b) {
          return std::tie(b.total_ns, a.name) < std::tie(a.total_ns, b.name);
        });
    if (rows.size() > options_.top) rows.resize(options_.top);
    return rows;
  };
  for (auto& [id, region] : regions_) {
    RegionSummary& summary = region.summary;
    summary.name = names_.Get(id);
    summary.busy_ns = region.busy.length();
    summary.window_ns = windows[id].length();
    std::sort(region.durations.begin(), region.durations.end());
    if (!region.durations.empty()) {
      summary.min_ns = region.durations.front();
      summary.max_ns = region.durations.back();
    }
    summary.p50_ns = Percentile(region.durations, 0.50);
    summary.p95_ns = Percentile(region.durations, 0.95);
    for (int64_t& duration : region.durations) {
      duration = std::abs(duration - static_cast<int64_t>(summary.p50_ns));
    }
    std::sort(region.durations.begin(), region.durations.end());
    summary.mad_ns = Percentile(region.durations, 0.50);
    summary.kernels = top(region.kernels);
    summary.ops = top(region.ops);
    summary_.regions.push_back(std::move(summary));
  }
  std::sort(summary_.regions.begin(), summary_.regions.end(),
            [](const RegionSummary& a, const RegionSummary& b) {
              return a.name < b.name;
            });
}

GpuWorkRow Analyzer::Row(const WorkKey& key, const WorkTotals& totals) const {
  return {
      .name = names_.Get(key.name),
      .kind = key.kind,
      .op = names_.Get(key.op),
      .device = key.lane == kNone ? 0 : lanes_[key.lane].device,
      .stream = key.lane == kNone ? 0 : lanes_[key.lane].stream,
      .count = totals.count,
      .total_ns = totals.total,
      .min_ns = totals.min,
      .max_ns = totals.max,
      .bytes = totals.bytes,
      .deviation_ns = totals.count < 2
                          ? 0
                          : std::sqrt(totals.squares /
                                      static_cast<double>(totals.count - 1))};
}

void Analyzer::FinishWork() {
  for (const auto& [key, totals] : work_) {
    summary_.work.push_back(Row(key, totals));
  }
  std::sort(summary_.work.begin(), summary_.work.end(),
            [](const GpuWorkRow& a, const GpuWorkRow& b) {
              return std::tie(b.total_ns, a.name, a.op, a.device, a.stream) <
                     std::tie(a.total_ns, b.name, b.op, b.device, b.stream);
            });
}

}  // namespace

absl::StatusOr<TraceSummary> AnalyzeTrace(TraceReader& reader,
                                          const TraceAnalyzerOptions& options) {
  return Analyzer(reader, options).Run();
}

}  // namespace firstframe
