#include "lib/startup/startup_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/percentile.h"
#include "lib/phase/phase_summary.h"
#include "lib/phase/phase_text.h"

namespace firstframe {
namespace {

constexpr double kNsPerMs = 1e6;

std::string Percent(const std::optional<double>& share) {
  return share ? absl::StrFormat("%.0f %%", 100 * *share) : "unknown";
}

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

std::string InParentheses(const std::string& text) {
  return text.empty() ? "" : absl::StrCat(" (", text, ")");
}

struct Row {
  std::string name;
  std::vector<double> samples_ns;
};

void WriteRow(size_t width, const Row& row, std::ostream& out) {
  std::vector<double> sorted = row.samples_ns;
  std::sort(sorted.begin(), sorted.end());
  out << absl::StrFormat("%-*s %6d %12.3f %12.3f %12.3f\n", width, row.name,
                         sorted.size(), sorted.front() / kNsPerMs,
                         PercentileOfSorted(sorted, 50) / kNsPerMs,
                         PercentileOfSorted(sorted, 95) / kNsPerMs);
}

}  // namespace

void WriteStartupText(const StartupContext& context,
                      const CheckpointFacts& checkpoint,
                      const StartupSample& sample,
                      const StartupTextOptions& options, std::ostream& out) {
  if (checkpoint.parameters > 0) {
    out << absl::StrFormat("Wan VAE, %.1f M parameters, %s",
                           static_cast<double>(checkpoint.parameters) / 1e6,
                           Mebibytes(checkpoint.size_bytes))
        << (checkpoint.is_synthetic ? " (synthetic)" : "") << "; "
        << context.device << InParentheses(context.device_name) << "; latent "
        << absl::StrJoin(context.latent_shape, "x") << "\n\n";
  }
  WritePhaseText(sample.phases,
                 {.width = static_cast<size_t>(std::max(options.columns, 80)),
                  .colour = options.colour},
                 out);
  out << "\n";
  if (sample.start && !sample.start->is_exact) {
    out << absl::StrFormat(
        "process.exec may have begun up to %.1f ms earlier (the kernel counts "
        "ticks); --runs makes it exact\n",
        static_cast<double>(sample.start->resolution_ns()) / kNsPerMs);
  }
  out << "checkpoint in the page cache: "
      << Percent(sample.cache.resident_before) << " before, "
      << Percent(sample.cache.resident_after) << " after"
      << InParentheses(sample.cache.unknown_reason) << "\n";
  if (sample.output) {
    out << absl::StrFormat("output %s, %s, %.4f to %.4f\n",
                           ShapeToString(sample.output->shape),
                           sample.output->is_finite ? "finite" : "NOT FINITE",
                           sample.output->min, sample.output->max);
  }
  if (sample.offload && !sample.offload->cycles.empty()) {
    const OffloadFacts& offload = *sample.offload;
    const OffloadCycle& last = offload.cycles.back();
    out << absl::StrFormat(
        "offload: %d cycles, the last one unload %.3f ms, load %.3f ms, decode "
        "%.3f ms; %s to the device, %s back once, %s avoided; decodes %s\n",
        offload.cycles.size(), last.unload_ns / kNsPerMs,
        last.load_ns / kNsPerMs, last.decode_ns / kNsPerMs,
        Mebibytes(offload.h2d_bytes), Mebibytes(offload.d2h_bytes),
        Mebibytes(offload.d2h_avoided_bytes),
        offload.is_identical ? "identical" : "DIFFER");
    for (const std::string& note : offload.degraded) {
      out << "offload: " << note << "\n";
    }
  }
  out << "memory: parameters " << Mebibytes(sample.parameter_bytes)
      << ", workspace " << Mebibytes(sample.workspace_bytes)
      << (sample.peak_device_bytes
              ? absl::StrCat(", device at most ",
                             Mebibytes(*sample.peak_device_bytes))
              : "")
      << ", whole process " << Mebibytes(sample.usage.max_resident_bytes)
      << "\n";
}

void WriteRepeatText(const RepeatResult& result, std::ostream& out) {
  std::vector<Row> rows;
  for (const PhaseStatistics& phase :
       SummarizePhases(result.document.samples).phases) {
    rows.push_back(
        {std::string(2 * phase.depth, ' ') + phase.name,
         {phase.duration.samples_ns.begin(), phase.duration.samples_ns.end()}});
  }
  if (result.launched_wall_ns.empty()) {
    out << "no run was completed\n";
    return;
  }
  rows.push_back(
      {"process, exec to exit",
       {result.launched_wall_ns.begin(), result.launched_wall_ns.end()}});
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  out << absl::StrFormat("%-*s %6s %12s %12s %12s\n", width, "phase", "runs",
                         "min ms", "median ms", "p95 ms");
  for (const Row& row : rows) WriteRow(width, row, out);
  const auto failed =
      std::count_if(result.exit_codes.begin(), result.exit_codes.end(),
                    [](int code) { return code != 0; });
  if (failed > 0) {
    out << failed << " of " << result.exit_codes.size() << " runs FAILED\n";
  }
}

}  // namespace firstframe
