#include "lib/trace/trace_analyzer.h"

#include <cmath>

#include "lib/trace/trace_analysis.h"

namespace firstframe {
namespace trace_analysis {
namespace {

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

}  // namespace

void TraceAnalysis::AddToRegions(const GpuEvent& event) {
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

absl::Status TraceAnalysis::SweepDevice() {
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

void TraceAnalysis::FinishRegions() {
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

GpuWorkRow TraceAnalysis::Row(const WorkKey& key,
                              const WorkTotals& totals) const {
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

void TraceAnalysis::FinishWork() {
  for (const auto& [key, totals] : work_) {
    summary_.work.push_back(Row(key, totals));
  }
  std::sort(summary_.work.begin(), summary_.work.end(),
            [](const GpuWorkRow& a, const GpuWorkRow& b) {
              return std::tie(b.total_ns, a.name, a.op, a.device, a.stream) <
                     std::tie(a.total_ns, b.name, b.op, b.device, b.stream);
            });
}

}  // namespace trace_analysis

absl::StatusOr<TraceSummary> AnalyzeTrace(TraceReader& reader,
                                          const TraceAnalyzerOptions& options) {
  return trace_analysis::TraceAnalysis(reader, options).Run();
}

}  // namespace firstframe
