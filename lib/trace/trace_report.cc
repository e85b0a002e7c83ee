#include "lib/trace/trace_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"

namespace firstframe {
namespace {

double Milliseconds(int64_t ns) { return static_cast<double>(ns) * 1e-6; }

double Percent(int64_t part, int64_t whole) {
  return whole == 0
             ? 0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Cuts `name` to `width` columns, between characters; the middle goes, since
// template kernels differ at both ends.
std::string Fit(absl::string_view name, size_t width) {
  if (name.size() <= width) return std::string(name);
  const size_t head = (width - 3) / 2, tail = width - 3 - head;
  const auto is_inside = [&](size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xC0) == 0x80;
  };
  size_t cut = head, rest = name.size() - tail;
  while (cut > 0 && is_inside(cut)) --cut;
  while (rest < name.size() && is_inside(rest)) ++rest;
  return absl::StrCat(name.substr(0, cut), "...", name.substr(rest));
}

struct ClassTotal {
  std::string name;
  int64_t count = 0;
  int64_t total_ns = 0;
};

std::vector<ClassTotal> ClassTotals(const TraceSummary& summary) {
  std::map<std::string, ClassTotal> totals;
  for (const GpuWorkRow& row : summary.work) {
    ClassTotal& total = totals[WorkClass(row)];
    total.count += row.count;
    total.total_ns += row.total_ns;
  }
  std::vector<ClassTotal> rows;
  for (auto& [name, total] : totals) {
    total.name = name;
    rows.push_back(std::move(total));
  }
  std::sort(rows.begin(), rows.end(),
            [](const ClassTotal& a, const ClassTotal& b) {
              return a.total_ns > b.total_ns;
            });
  return rows;
}

// Rows of one kernel on several streams or from several operators, together.
std::vector<GpuWorkRow> Kernels(const TraceSummary& summary) {
  std::map<std::string, GpuWorkRow> merged;
  for (const GpuWorkRow& row : summary.work) {
    const auto [found, added] = merged.try_emplace(row.name, row);
    if (added) continue;
    GpuWorkRow& total = found->second;
    total.count += row.count;
    total.total_ns += row.total_ns;
    total.min_ns = std::min(total.min_ns, row.min_ns);
    total.max_ns = std::max(total.max_ns, row.max_ns);
    total.bytes += row.bytes;
  }
  std::vector<GpuWorkRow> rows;
  for (auto& [name, row] : merged) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const GpuWorkRow& a, const GpuWorkRow& b) {
                     return a.total_ns > b.total_ns;
                   });
  return rows;
}

void WriteDeviceText(const GpuTimeline& gpu, std::ostream& out) {
  const auto line = [&](absl::string_view what, int64_t ns) {
    out << absl::StreamFormat("  %-24s %12.3f ms %6.2f %%\n", what,
                              Milliseconds(ns), Percent(ns, gpu.total_ns()));
  };
  out << absl::StreamFormat("GPU %d: %d events\n", gpu.device, gpu.event_count);
  line("total", gpu.total_ns());
  line("busy", gpu.busy_ns);
  line("  compute", gpu.compute_ns);
  line("  collectives", gpu.comm_ns);
  line("    exposed", gpu.exposed_comm_ns);
  line("  copies", gpu.copy_ns);
  line("    exposed", gpu.exposed_copy_ns);
  line("idle", gpu.idle_ns());
  line("  launch-bound", gpu.launch_bound_ns);
}

void WriteWorkText(const std::vector<GpuWorkRow>& rows, size_t top,
                   int64_t whole_ns, int columns, absl::string_view indent,
                   std::ostream& out) {
  const size_t width = std::max<int>(columns - 46, 30);
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const GpuWorkRow& row = rows[i];
    out << indent
        << absl::StreamFormat(
               "%11.3f ms %6.2f %% %7d x  %s\n", Milliseconds(row.total_ns),
               Percent(row.total_ns, whole_ns), row.count,
               Fit(row.name.empty() ? "(no operator)" : row.name, width));
  }
  if (rows.size() > top) {
    out << indent << "... " << rows.size() - top << " more\n";
  }
}

void WriteRegionText(const RegionSummary& region,
                     const TraceReportOptions& options, std::ostream& out) {
  out << absl::StreamFormat(
      "%s: %d times, host %.3f ms (p50 %.3f, p95 %.3f, max %.3f)\n",
      region.name, region.count, Milliseconds(region.host_ns),
      region.p50_ns * 1e-6, region.p95_ns * 1e-6, Milliseconds(region.max_ns));
  out << absl::StreamFormat(
      "  window %.3f ms: GPU busy %.3f ms (%.2f %%), idle %.3f ms, of which "
      "launch-bound %.3f ms\n",
      Milliseconds(region.window_ns), Milliseconds(region.busy_ns),
      Percent(region.busy_ns, region.window_ns), Milliseconds(region.idle_ns()),
      Milliseconds(region.launch_bound_ns));
  out << absl::StreamFormat(
      "  %d GPU events: kernels %.3f ms, copies %.3f ms, memsets %.3f ms, "
      "collectives %.3f ms\n",
      region.gpu_event_count, Milliseconds(region.kernel_ns),
      Milliseconds(region.copy_ns), Milliseconds(region.memset_ns),
      Milliseconds(region.comm_ns));
  if (region.by_time_count > 0) {
    out << "  " << region.by_time_count
        << " of them launched by threads in no region\n";
  }
  const int64_t work = region.kernel_ns + region.copy_ns + region.memset_ns;
  if (!region.kernels.empty()) {
    out << "  kernels:\n";
    WriteWorkText(region.kernels, options.top, work, options.columns, "  ",
                  out);
    out << "  operators:\n";
    WriteWorkText(region.ops, options.top, work, options.columns, "  ", out);
  }
}

void WriteOddText(const TraceSummary& summary, std::ostream& out) {
  const auto note = [&](int64_t count, absl::string_view what) {
    if (count > 0) out << "note: " << count << " " << what << "\n";
  };
  note(summary.dropped_zero_time,
       "GPU events at time 0 left out (never seen by the tracer)");
  note(summary.dropped_negative, "GPU events of negative length left out");
  note(summary.dropped_overlong, "GPU events longer than a week left out");
  note(summary.gpu_without_launch, "GPU events without their launch");
  note(summary.regions_over_limit, "region entries over the memory limit");
  for (int i = 0; i < kTraceOddityCount; ++i) {
    const TraceOddityNote& odd = summary.file.oddities[i];
    if (odd.count == 0) continue;
    out << "note: " << TraceOddityName(static_cast<TraceOddity>(i)) << ": "
        << odd.count << (odd.count == 1 ? " time" : " times")
        << ", first at byte " << odd.first_offset << "\n";
  }
}

void WriteWorkJson(const std::vector<GpuWorkRow>& rows, size_t top,
                   bool with_place, JsonWriter& json) {
  json.BeginArray();
  for (size_t i = 0; i < std::min(top, rows.size()); ++i) {
    const GpuWorkRow& row = rows[i];
    json.BeginObject();
    json.Key("name").String(row.name);
    if (with_place) {
      json.Key("op").String(row.op);
      json.Key("class").String(WorkClass(row));
      json.Key("device").Int(row.device);
      json.Key("stream").Int(row.stream);
      json.Key("size_bytes").Int(row.bytes);
    }
    json.Key("count").Int(row.count);
    json.Key("total_ns").Int(row.total_ns);
    json.Key("min_ns").Int(row.min_ns);
    json.Key("max_ns").Int(row.max_ns);
    json.Key("deviation_ns").Double(row.deviation_ns);
    json.EndObject();
  }
  json.EndArray();
}

void WriteDeviceJson(const GpuTimeline& gpu, JsonWriter& json) {
  json.BeginObject();
  json.Key("device").Int(gpu.device);
  json.Key("event_count").Int(gpu.event_count);
  json.Key("first_ns").Int(gpu.first_ns);
  json.Key("total_ns").Int(gpu.total_ns());
  json.Key("busy_ns").Int(gpu.busy_ns);
  json.Key("compute_ns").Int(gpu.compute_ns);
  json.Key("comm_ns").Int(gpu.comm_ns);
  json.Key("exposed_comm_ns").Int(gpu.exposed_comm_ns);
  json.Key("copy_ns").Int(gpu.copy_ns);
  json.Key("exposed_copy_ns").Int(gpu.exposed_copy_ns);
  json.Key("idle_ns").Int(gpu.idle_ns());
  json.Key("launch_bound_ns").Int(gpu.launch_bound_ns);
  json.EndObject();
}

void WriteRegionJson(const RegionSummary& region, size_t top,
                     JsonWriter& json) {
  json.BeginObject();
  json.Key("name").String(region.name);
  json.Key("count").Int(region.count);
  json.Key("host_ns").Int(region.host_ns);
  json.Key("min_ns").Int(region.min_ns);
  json.Key("p50_ns").Double(region.p50_ns);
  json.Key("p95_ns").Double(region.p95_ns);
  json.Key("mad_ns").Double(region.mad_ns);
  json.Key("max_ns").Int(region.max_ns);
  json.Key("launch_count").Int(region.launch_count);
  json.Key("gpu_event_count").Int(region.gpu_event_count);
  json.Key("by_time_count").Int(region.by_time_count);
  json.Key("window_ns").Int(region.window_ns);
  json.Key("busy_ns").Int(region.busy_ns);
  json.Key("idle_ns").Int(region.idle_ns());
  json.Key("launch_bound_ns").Int(region.launch_bound_ns);
  json.Key("kernel_ns").Int(region.kernel_ns);
  json.Key("copy_ns").Int(region.copy_ns);
  json.Key("memset_ns").Int(region.memset_ns);
  json.Key("comm_ns").Int(region.comm_ns);
  json.Key("kernels");
  WriteWorkJson(region.kernels, top, false, json);
  json.Key("ops");
  WriteWorkJson(region.ops, top, false, json);
  json.EndObject();
}

void WriteTraceJson(const TraceSummary& summary, size_t top, JsonWriter& json) {
  json.BeginObject();
  json.Key("path").String(summary.file.path);
  json.Key("rank");
  if (summary.file.Rank() < 0) {
    json.Null();
  } else {
    json.Int(summary.file.Rank());
  }
  json.Key("base_time_ns").Int(summary.file.base_time_ns);
  json.Key("unpacked_bytes").Uint(summary.file.unpacked_bytes);
  json.Key("event_count").Int(summary.file.event_count);
  json.Key("host_op_count").Int(summary.host_op_count);
  json.Key("launch_count").Int(summary.launch_count);
  json.Key("gpu_event_count").Int(summary.gpu_event_count);
  json.Key("gpu_outside_regions").Int(summary.gpu_outside_regions);
  json.Key("gpu_without_launch").Int(summary.gpu_without_launch);
  json.Key("dropped_zero_time").Int(summary.dropped_zero_time);
  json.Key("dropped_negative").Int(summary.dropped_negative);
  json.Key("dropped_overlong").Int(summary.dropped_overlong);
  json.Key("oddities").BeginObject();
  for (int i = 0; i < kTraceOddityCount; ++i) {
    const TraceOddityNote& odd = summary.file.oddities[i];
    if (odd.count == 0) continue;
    json.Key(TraceOddityName(static_cast<TraceOddity>(i))).BeginObject();
    json.Key("count").Int(odd.count);
    json.Key("first_offset").Uint(odd.first_offset);
    json.EndObject();
  }
  json.EndObject();
  json.Key("devices").BeginArray();
  for (const GpuTimeline& gpu : summary.devices) WriteDeviceJson(gpu, json);
  json.EndArray();
  json.Key("has_named_regions").Bool(summary.has_named_regions);
  json.Key("regions").BeginArray();
  for (const RegionSummary& region : summary.regions) {
    WriteRegionJson(region, top, json);
  }
  json.EndArray();
  json.Key("classes").BeginArray();
  for (const ClassTotal& total : ClassTotals(summary)) {
    json.BeginObject();
    json.Key("name").String(total.name);
    json.Key("count").Int(total.count);
    json.Key("total_ns").Int(total.total_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("work");
  WriteWorkJson(summary.work, summary.work.size(), true, json);
  json.EndObject();
}

}  // namespace

void WriteTraceText(const TraceSummary& summary,
                    const TraceReportOptions& options, std::ostream& out) {
  out << summary.file.path << ": " << summary.file.event_count << " events";
  if (summary.file.Rank() >= 0) out << ", rank " << summary.file.Rank();
  out << "\n";
  int64_t work = 0;
  for (const GpuWorkRow& row : summary.work) work += row.total_ns;
  for (const GpuTimeline& gpu : summary.devices) WriteDeviceText(gpu, out);
  if (summary.devices.empty()) out << "no GPU events\n";
  for (const RegionSummary& region : summary.regions) {
    out << "\n" << (summary.has_named_regions ? "region " : "annotation ");
    WriteRegionText(region, options, out);
  }
  if (!summary.regions.empty()) {
    out << "\n"
        << summary.gpu_outside_regions << " of " << summary.gpu_event_count
        << " GPU events in no "
        << (summary.has_named_regions ? "region" : "annotation") << "\n";
  }
  if (!summary.work.empty()) {
    out << "\noperator classes:\n";
    for (const ClassTotal& total : ClassTotals(summary)) {
      out << absl::StreamFormat(
          "%13.3f ms %6.2f %% %7d x  %s\n", Milliseconds(total.total_ns),
          Percent(total.total_ns, work), total.count, total.name);
    }
    out << "\nkernels and copies:\n";
    WriteWorkText(Kernels(summary), options.top, work, options.columns, "  ",
                  out);
  }
  WriteOddText(summary, out);
}

std::string TraceReportJson(const std::vector<TraceSummary>& summaries,
                            const TraceReportOptions& options) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginJsonDocument("trace_report", 1, json);
  json.Key("traces").BeginArray();
  for (const TraceSummary& summary : summaries) {
    WriteTraceJson(summary, options.top, json);
  }
  json.EndArray();
  json.EndObject();
  text += "\n";
  return text;
}

}  // namespace firstframe
