#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"
#include "lib/base/percentile.h"
#include "lib/load/weight_bench_figures.h"
#include "lib/load/weight_bench_report.h"

namespace firstframe {
namespace {

using weight_bench_internal::FindMode;
using weight_bench_internal::FractionOfLimit;
using weight_bench_internal::Rate;
using weight_bench_internal::Verdict;

void WriteLimit(absl::string_view name, const Limit& limit, JsonWriter* json) {
  json->Key(absl::StrCat(name, "_gb_per_s")).OptionalDouble(limit.gb_per_s);
  if (!limit.gb_per_s) {
    json->Key(absl::StrCat(name, "_reason")).String(limit.reason);
  }
}

void WriteRoofline(const Roofline& roofline, JsonWriter* json) {
  json->BeginObject();
  WriteLimit("pinned_h2d", roofline.pinned_h2d, json);
  WriteLimit("cached_read", roofline.cached_read, json);
  WriteLimit("host_copy", roofline.host_copy, json);
  WriteLimit("direct_read", roofline.direct_read, json);
  WriteLimit("broadcast", roofline.broadcast, json);
  WriteLimit("all_gather", roofline.all_gather, json);
  json->Key("all_ranks_pinned_h2d_gb_per_s").Double(roofline.total_pinned_h2d);
  json->Key("all_ranks_cached_read_gb_per_s")
      .Double(roofline.total_cached_read);
  json->Key("all_ranks_direct_read_gb_per_s")
      .Double(roofline.total_direct_read);
  json->EndObject();
}

void WriteSample(const WeightBenchResult& result, const ModeResult& mode,
                 size_t repeat, JsonWriter* json) {
  const LoadSample& sample = mode.samples[repeat];
  json->BeginObject();
  json->Key("mode").String(GetLoadModeInfo(mode.mode).name);
  json->Key("repeat").Uint(repeat);
  json->Key("seconds").Double(sample.seconds);
  json->Key("gb_per_s").Double(Rate(result, sample.seconds));
  json->Key("slowest_rank").Int(sample.slowest_rank);
  json->Key("rank_seconds").BeginArray();
  for (const double seconds : sample.rank_seconds) json->Double(seconds);
  json->EndArray();
  // Of the rank that writes this, rank 0.
  json->Key("phases").BeginObject();
  json->Key("plan_s").Double(result.plan_s);
  json->Key("allocate_s").Double(sample.allocate_s);
  json->Key("pin_s").Double(sample.pin_s);
  json->Key("init_s").Double(result.context_s + result.group_s);
  json->Key("probe_s").Double(sample.probe_s);
  json->Key("choose_s").Double(sample.choose_s);
  json->Key("start_s").Double(sample.start_s);
  json->Key("fill_s").Double(sample.fill_s);
  json->Key("drain_s").Double(sample.drain_s);
  json->Key("read_s").Double(sample.read_s);
  json->Key("copy_wait_s").Double(sample.copy_wait_s);
  json->Key("h2d_s").Double(sample.h2d_s);
  json->Key("collective_s").Double(sample.collective_s);
  json->Key("verify_s").Double(sample.verify_s);
  json->EndObject();
  json->Key("resident_before").OptionalDouble(sample.resident_before);
  json->Key("resident_after").OptionalDouble(sample.resident_after);
  if (sample.verified) {
    json->Key("verified").Bool(*sample.verified);
  } else {
    json->Key("verified").Null();
  }
  json->Key("wrong_tensors").BeginArray();
  for (const std::string& name : sample.wrong_tensors) json->String(name);
  json->EndArray();
  json->Key("bytes_by_path").BeginObject();
  for (int path = 0; path < 3; ++path) {
    json->Key(ReadPathName(static_cast<ReadPath>(path)))
        .Uint(sample.bytes_by_path[path]);
  }
  json->EndObject();
  json->Key("direct_method").String(sample.direct_method);
  json->Key("threads").Int(sample.threads);
  json->Key("ring_bytes").Uint(sample.ring_bytes);
  json->Key("host_memory_growth_bytes").Int(sample.host_bytes_added);
  json->Key("degraded").BeginArray();
  for (const std::string& note : sample.degraded) json->String(note);
  json->EndArray();
  json->EndObject();
}

void WriteSummary(const WeightBenchResult& result, const ModeResult& mode,
                  JsonWriter* json) {
  json->BeginObject();
  json->Key("mode").String(GetLoadModeInfo(mode.mode).name);
  json->Key("is_baseline").Bool(GetLoadModeInfo(mode.mode).is_baseline);
  if (mode.samples.empty()) {
    json->Key("seconds_best").Null();
    json->Key("skipped").String(mode.skipped);
    json->EndObject();
    return;
  }
  std::vector<double> seconds;
  for (const LoadSample& sample : mode.samples) {
    seconds.push_back(sample.seconds);
  }
  if (!mode.chosen_because.empty()) {
    json->Key("chosen_because").String(mode.chosen_because);
  }
  json->Key("n").Uint(seconds.size());
  json->Key("seconds_best").Double(mode.BestSeconds());
  json->Key("seconds_median").Double(mode.MedianSeconds());
  json->Key("seconds_mean").Double(mode.MeanSeconds());
  json->Key("seconds_p95").Double(Percentile(seconds, 95));
  json->Key("gb_per_s_best").Double(Rate(result, mode.BestSeconds()));
  json->Key("gb_per_s_median").Double(Rate(result, mode.MedianSeconds()));
  json->Key("limit").String(mode.limit.name);
  json->Key("limit_gb_per_s").OptionalDouble(mode.limit.gb_per_s);
  json->Key("fraction_of_limit").OptionalDouble(FractionOfLimit(result, mode));
  const ModeResult* const base = FindBaseline(result, mode.mode);
  if (base != nullptr) {
    json->Key("speedup").Double(base->BestSeconds() / mode.BestSeconds());
    json->Key("speedup_over").String(GetLoadModeInfo(base->mode).name);
  }
  if (const ModeResult* own = FindMode(result, LoadMode::kIndependent)) {
    json->Key("speedup_over_independent")
        .Double(own->BestSeconds() / mode.BestSeconds());
  }
  const std::string verdict = Verdict(mode);
  json->Key("verified");
  if (verdict == "-") {
    json->Null();
  } else {
    json->Bool(verdict == "yes");
  }
  json->EndObject();
}

void OptionalBytes(absl::string_view key, std::optional<uint64_t> bytes,
                   JsonWriter* json) {
  json->Key(key);
  if (bytes) {
    json->Uint(*bytes);
  } else {
    json->Null();
  }
}

void WriteDevice(const WeightBenchContext& context, JsonWriter* json) {
  json->Key("device");
  if (!context.device) {
    json->Null();
    return;
  }
  json->BeginObject();
  json->Key("name").String(context.device->name);
  json->Key("ordinal").Int(context.device->ordinal);
  json->Key("pci_bus_id").String(context.device->pci_bus_id);
  json->Key("memory_bytes").Int(context.device->memory_bytes);
  json->Key("numa_node").Int(context.device->numa_node);
  json->Key("pcie_link").String(context.pcie_link);
  json->Key("pcie_link_max").String(context.pcie_link_max);
  json->Key("cuda_driver").Int(context.versions.driver);
  json->Key("cuda_runtime").Int(context.versions.runtime);
  json->EndObject();
}

void WriteContext(const WeightBenchResult& result,
                  const WeightBenchContext& context, JsonWriter* json) {
  json->BeginObject();
  json->Key("path").String(context.path);
  json->Key("tensors").Uint(result.tensors);
  json->Key("files").Uint(result.files);
  json->Key("tensor_bytes").Uint(result.tensor_bytes);
  json->Key("ranks").Int(result.ranks);
  json->Key("launcher").String(context.launch.launcher);
  json->Key("transport").String(context.transport);
  json->Key("warmup").Int(context.warmup);
  json->Key("cache").String(CacheModeName(context.cache));
  json->Key("residency_method").String(result.residency.method);
  json->Key("resident_at_start").OptionalDouble(result.residency.fraction());
  json->Key("cuda_context_s").Double(result.context_s);
  json->Key("group_init_s").Double(result.group_s);
  json->Key("file_system").BeginObject();
  json->Key("type").String(context.file_system.type);
  json->Key("kind").String(FileSystemKindName(context.file_system.kind));
  json->Key("device").String(context.file_system.device);
  json->Key("options").String(context.file_system.options);
  json->EndObject();
  json->Key("cufile").String(result.cufile);
  json->Key("transparent_huge_pages").String(context.transparent_huge_pages);
  OptionalBytes("cgroup_limit_bytes", context.memory.cgroup_limit_bytes, json);
  OptionalBytes("cgroup_headroom_bytes", context.memory.cgroup_headroom_bytes,
                json);
  OptionalBytes("memlock_limit_bytes", context.memory.memlock_limit_bytes,
                json);
  WriteDevice(context, json);
  json->Key("machine");
  WriteJson(context.machine, *json);
  json->EndObject();
}

}  // namespace

void WriteWeightBenchJson(const WeightBenchResult& result,
                          const WeightBenchContext& context,
                          std::ostream& out) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  BeginJsonDocument("weight_bench", 1, json);
  json.Key("context");
  WriteContext(result, context, &json);
  json.Key("samples").BeginArray();
  for (const ModeResult& mode : result.modes) {
    for (size_t i = 0; i < mode.samples.size(); ++i) {
      WriteSample(result, mode, i, &json);
    }
  }
  json.EndArray();
  json.Key("summary").BeginObject();
  json.Key("modes").BeginArray();
  for (const ModeResult& mode : result.modes) {
    WriteSummary(result, mode, &json);
  }
  json.EndArray();
  json.Key("limits");
  if (result.roofline) {
    WriteRoofline(*result.roofline, &json);
  } else {
    json.Null();
  }
  json.EndObject();
  json.EndObject();
  out << text << "\n";
}

}  // namespace firstframe
