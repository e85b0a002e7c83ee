#include "lib/load/weight_bench_report.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/load/weight_bench_figures.h"

namespace firstframe {
namespace {

using weight_bench_internal::FindMode;
using weight_bench_internal::FractionOfLimit;
using weight_bench_internal::Rate;
using weight_bench_internal::Verdict;

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

std::string Percent(std::optional<double> fraction) {
  return fraction ? absl::StrFormat("%.1f %%", *fraction * 100) : "unknown";
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

// Where the time of each parallel mode's best load went. Reads overlap copies:
// the last two columns are parts of the others.
void WritePhases(const WeightBenchResult& result, std::ostream& out) {
  bool has_head = false;
  for (const ModeResult& mode : result.modes) {
    if (mode.samples.empty()) continue;
    const LoadSample& best = *std::min_element(
        mode.samples.begin(), mode.samples.end(),
        [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    if (best.threads < 2 || best.start_s == 0) continue;
    if (!has_head) {
      out << absl::StrFormat("\n%-24s %7s %7s %7s %7s %7s %7s %9s %9s\n",
                             "rank 0's best load, ms", "probe", "choose",
                             "start", "fill", "drain", "total", "reading",
                             "waiting");
      has_head = true;
    }
    out << absl::StrFormat(
        "%-24s %7.2f %7.2f %7.2f %7.2f %7.2f %7.2f %9.2f %9.2f\n",
        std::string(GetLoadModeInfo(mode.mode).name), best.probe_s * 1e3,
        best.choose_s * 1e3, best.start_s * 1e3, best.fill_s * 1e3,
        best.drain_s * 1e3, best.seconds * 1e3, best.read_s * 1e3,
        best.copy_wait_s * 1e3);
  }
}

// Everything that deserves a line below the table.
void WriteNotes(const WeightBenchResult& result, std::ostream& out) {
  for (const ModeResult& mode : result.modes) {
    const absl::string_view name = GetLoadModeInfo(mode.mode).name;
    if (!mode.chosen_because.empty()) {
      out << "auto is " << name << ": " << mode.chosen_because << "\n";
    }
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
  WritePhases(result, out);
  WriteLimits(result, out);
  WriteNotes(result, out);
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
