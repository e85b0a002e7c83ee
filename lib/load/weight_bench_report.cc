#include "lib/load/weight_bench_report.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/json_writer.h"
#include "lib/base/percentile.h"

namespace firstframe {
namespace {

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

double Rate(const WeightBenchResult& result, double seconds) {
  return static_cast<double>(result.tensor_bytes) / 1e9 / seconds;
}

const ModeResult* FindMode(const WeightBenchResult& result, LoadMode mode) {
  for (const ModeResult& candidate : result.modes) {
    if (candidate.mode == mode && !candidate.samples.empty()) {
      return &candidate;
    }
  }
  return nullptr;
}

std::string Percent(std::optional<double> fraction) {
  return fraction ? absl::StrFormat("%.1f %%", *fraction * 100) : "unknown";
}

std::optional<double> FractionOfLimit(const WeightBenchResult& result,
                                      const ModeResult& mode) {
  if (!mode.limit.gb_per_s) return std::nullopt;
  return Rate(result, mode.BestSeconds()) / *mode.limit.gb_per_s;
}

// "yes", "NO", or "-" when no sample was asked.
std::string Verdict(const ModeResult& mode) {
  bool asked = false;
  for (const LoadSample& sample : mode.samples) {
    if (!sample.verified) continue;
    asked = true;
    if (!*sample.verified) return "NO";
  }
  return asked ? "yes" : "-";
}

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

void WriteTable(const WeightBenchResult& result, std::ostream& out) {
  out << absl::StrFormat("%-24s %9s %9s %8s %9s %9s %9s\n", "mode", "avg",
                         "best", "GB/s", "speed-up", "of limit", "verified");
  for (const ModeResult& mode : result.modes) {
    const std::string name(GetLoadModeInfo(mode.mode).name);
    if (mode.samples.empty()) {
      out << absl::StrFormat("%-24s skipped: %s\n", name, mode.skipped);
      continue;
    }
    const ModeResult* const base = FindBaseline(result, mode.mode);
    const std::optional<double> fraction = FractionOfLimit(result, mode);
    out << absl::StrFormat(
        "%-24s %7.4f s %7.4f s %8.2f %9s %9s %9s\n", name, mode.MeanSeconds(),
        mode.BestSeconds(), Rate(result, mode.BestSeconds()),
        base == nullptr ? "-"
                        : absl::StrFormat("%.2fx", base->BestSeconds() /
                                                       mode.BestSeconds()),
        fraction ? absl::StrFormat("%.1f %%", *fraction * 100) : "-",
        Verdict(mode));
  }
}

// Everything that deserves a line below the table.
void WriteNotes(const WeightBenchResult& result, std::ostream& out) {
  for (const ModeResult& mode : result.modes) {
    const absl::string_view name = GetLoadModeInfo(mode.mode).name;
    std::vector<std::string> seen;
    for (const LoadSample& sample : mode.samples) {
      for (const std::string& note : sample.degraded) {
        if (std::find(seen.begin(), seen.end(), note) != seen.end()) continue;
        seen.push_back(note);
        out << "degraded, " << name << ": " << note << "\n";
      }
      if (!sample.wrong_tensors.empty()) {
        out << "WRONG BYTES, " << name << ": "
            << absl::StrJoin(sample.wrong_tensors, ", ") << "\n";
      }
    }
  }
}

void WriteLimits(const WeightBenchResult& result, std::ostream& out) {
  if (!result.roofline) return;
  const Roofline& roofline = *result.roofline;
  out << "\nlimits measured in this run, GB/s (best of 3)\n";
  const auto line = [&](absl::string_view name, const Limit& limit) {
    out << absl::StrFormat("  %-24s %s\n", std::string(name),
                           limit.gb_per_s
                               ? absl::StrFormat("%8.2f", *limit.gb_per_s)
                               : absl::StrCat("       - ", limit.reason));
  };
  line("pinned copy to device", roofline.pinned_h2d);
  line("page cache, threads", roofline.cached_read);
  line("mapping to host arena", roofline.host_copy);
  line("direct read", roofline.direct_read);
  line("broadcast", roofline.broadcast);
  line("all-gather", roofline.all_gather);
  for (const ModeResult& mode : result.modes) {
    if (!mode.limit.gb_per_s) continue;
    out << absl::StrFormat("  %s is bound by %s, %.2f\n",
                           std::string(GetLoadModeInfo(mode.mode).name),
                           mode.limit.name, *mode.limit.gb_per_s);
  }
}

}  // namespace

WeightBenchContext ReadWeightBenchContext(
    const std::string& path,
    const std::optional<cuda::DeviceProperties>& device) {
  WeightBenchContext context;
  context.build = GetBuildInfo();
  context.machine = ReadMachine();
  context.memory = ReadMemoryBudget();
  context.path = path;
  if (auto file_system = DescribeFileSystem(path); file_system.ok()) {
    context.file_system = *std::move(file_system);
  }
  context.transparent_huge_pages =
      ReadLine("/sys/kernel/mm/transparent_hugepage/enabled");
  context.device = device;
  if (device) {
    const std::string folder =
        absl::StrCat("/sys/bus/pci/devices/",
                     absl::AsciiStrToLower(device->pci_bus_id), "/");
    const auto link = [&](absl::string_view which) {
      const std::string speed =
          ReadLine(absl::StrCat(folder, which, "_link_speed"));
      const std::string width =
          ReadLine(absl::StrCat(folder, which, "_link_width"));
      return speed.empty() ? std::string() : absl::StrCat(speed, " x", width);
    };
    context.pcie_link = link("current");
    context.pcie_link_max = link("max");
  }
  return context;
}

const ModeResult* FindBaseline(const WeightBenchResult& result,
                               LoadMode for_mode) {
  if (for_mode != LoadMode::kToCpu && for_mode != LoadMode::kHost) {
    if (const ModeResult* base =
            FindMode(result, LoadMode::kIndependentPerTensor)) {
      return base;
    }
    // One rank that reads and broadcasts to nobody is an independent read.
    const ModeResult* base = FindMode(result, LoadMode::kToGpu);
    if (base != nullptr && result.ranks == 1) return base;
  }
  return FindMode(result, LoadMode::kToCpu);
}

void WriteWeightBenchText(const WeightBenchResult& result,
                          const WeightBenchContext& context,
                          std::ostream& out) {
  out << absl::StrFormat(
      "%d tensors, %.3f GB, %d %s on %s (%s)\n", result.tensors,
      static_cast<double>(result.tensor_bytes) / 1e9, result.files,
      result.files == 1 ? "file" : "files", context.file_system.type,
      std::string(FileSystemKindName(context.file_system.kind)));
  out << absl::StrFormat(
      "%d %s, transport %s, %s; page cache %s, resident at start %s\n",
      result.ranks, result.ranks == 1 ? "rank" : "ranks", context.transport,
      context.device ? context.device->name : "host memory",
      std::string(CacheModeName(context.cache)),
      Percent(result.residency.fraction()));
  double pin_s = 0;
  for (const ModeResult& mode : result.modes) {
    for (const LoadSample& sample : mode.samples) {
      pin_s = std::max(pin_s, sample.pin_s);
    }
  }
  out << absl::StrFormat(
      "apart from loading: plan %.4f s, CUDA context %.3f s, joining ranks "
      "%.3f s, pinning at most %.4f s\n\n",
      result.plan_s, result.context_s, result.group_s, pin_s);
  WriteTable(result, out);
  WriteLimits(result, out);
  WriteNotes(result, out);
}

void WriteWeightBenchJson(const WeightBenchResult& result,
                          const WeightBenchContext& context,
                          std::ostream& out) {
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String("firstframe.weight_bench");
  json.Key("version").Int(1);
  json.EndObject();
  json.Key("tool").BeginObject();
  json.Key("name").String("weight_bench");
  json.Key("version").String(context.build.version);
  json.Key("commit").String(context.build.commit);
  json.EndObject();
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

void WriteWeightBenchGithub(const WeightBenchResult& result,
                            const WeightBenchContext& context,
                            std::ostream& out) {
  const auto cell = [&](LoadMode mode) -> std::string {
    const ModeResult* const found = FindMode(result, mode);
    if (found == nullptr) return "-";
    return absl::StrFormat("%.3fs (%.2f GB/s)", found->BestSeconds(),
                           Rate(result, found->BestSeconds()));
  };
  const ModeResult* const base =
      FindBaseline(result, LoadMode::kIndependentPerTensor);
  const auto speedup = [&](LoadMode mode) -> std::string {
    const ModeResult* const found = FindMode(result, mode);
    if (found == nullptr || base == nullptr) return "-";
    return absl::StrFormat("%.2fx", base->BestSeconds() / found->BestSeconds());
  };
  const LoadMode sync = FindMode(result, LoadMode::kBroadcastSync) != nullptr
                            ? LoadMode::kBroadcastSync
                            : LoadMode::kToGpu;
  out << absl::StrFormat("%.2f GB in %d tensors, %s, page cache %s:\n\n",
                         static_cast<double>(result.tensor_bytes) / 1e9,
                         result.tensors,
                         context.device ? context.device->name : "host memory",
                         std::string(CacheModeName(context.cache)));
  out << "| " << (context.device ? "GPUs" : "Ranks")
      << " | Independent read | Sync broadcast | Speedup | Async broadcast | "
         "independent | broadcast_bucketed | shard_allgather | best of ours |\n"
      << "|---|---|---|---|---|---|---|---|---|\n";
  const ModeResult* best = nullptr;
  for (const LoadMode mode :
       {LoadMode::kIndependent, LoadMode::kBroadcastBucketed,
        LoadMode::kShardAllgather}) {
    const ModeResult* const found = FindMode(result, mode);
    if (found != nullptr &&
        (best == nullptr || found->BestSeconds() < best->BestSeconds())) {
      best = found;
    }
  }
  out << "| " << result.ranks << " | "
      << (base == nullptr ? "-" : cell(base->mode)) << " | " << cell(sync)
      << " | " << speedup(sync) << " | " << cell(LoadMode::kBroadcastAsync)
      << " | " << cell(LoadMode::kIndependent) << " | "
      << cell(LoadMode::kBroadcastBucketed) << " | "
      << cell(LoadMode::kShardAllgather) << " | "
      << (best == nullptr ? "-" : speedup(best->mode)) << " |\n";
}

}  // namespace firstframe
