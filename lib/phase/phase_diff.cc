#include "lib/phase/phase_diff.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/text_width.h"
#include "lib/phase/phase_summary.h"

namespace firstframe {
namespace {

constexpr size_t kNumberColumns = 12 + 12 + 12 + 10;

bool AreSeparated(const DurationStatistics& left,
                  const DurationStatistics& right) {
  constexpr size_t kMinRuns = 3;
  if (left.samples_ns.size() < kMinRuns || right.samples_ns.size() < kMinRuns) {
    return false;
  }
  const auto [left_min, left_max] =
      std::minmax_element(left.samples_ns.begin(), left.samples_ns.end());
  const auto [right_min, right_max] =
      std::minmax_element(right.samples_ns.begin(), right.samples_ns.end());
  return *left_max < *right_min || *right_max < *left_min;
}

int64_t Delta(const PhaseDifference& difference) {
  return difference.right_ns.value_or(0) - difference.left_ns.value_or(0);
}

std::string Milliseconds(std::optional<int64_t> ns) {
  return ns ? absl::StrFormat("%.1f", *ns / 1e6) : "-";
}

std::string Percent(const PhaseDifference& difference) {
  if (!difference.left_ns || !difference.right_ns || *difference.left_ns == 0) {
    return "-";
  }
  return absl::StrFormat("%+.1f%%",
                         100.0 * static_cast<double>(Delta(difference)) /
                             static_cast<double>(*difference.left_ns));
}

void WriteRow(const PhaseDifference& row, size_t name_width,
              const PhaseDiffTextOptions& options, std::ostream& out) {
  const std::string name = absl::StrCat(
      std::string(2 * std::min(row.depth, 12), ' '), PrintableText(row.name));
  out << FitWidth(name, name_width)
      << absl::StrFormat("%12s%12s", Milliseconds(row.left_ns),
                         Milliseconds(row.right_ns));
  const char* const colour = Delta(row) > 0 ? "\x1b[31m" : "\x1b[32m";
  if (options.colour && row.is_separated) out << colour;
  out << absl::StrFormat("%12s%9s%s",
                         absl::StrFormat("%+.1f", Delta(row) / 1e6),
                         Percent(row), row.is_separated ? "*" : " ");
  if (options.colour && row.is_separated) out << "\x1b[0m";
  out << '\n';
}

void WriteDifference(const PhaseDifference& row, JsonWriter& json) {
  const auto optional = [&](const char* key, std::optional<int64_t> value) {
    json.Key(key);
    value ? json.Int(*value) : json.Null();
  };
  json.BeginObject();
  json.Key("path").String(row.path);
  json.Key("depth").Int(row.depth);
  optional("left_median_ns", row.left_ns);
  optional("right_median_ns", row.right_ns);
  json.Key("delta_ns").Int(Delta(row));
  json.Key("is_separated").Bool(row.is_separated);
  json.EndObject();
}

}  // namespace

PhaseDiff DiffPhases(const PhaseDocument& left, const PhaseDocument& right) {
  const PhaseSummary left_summary = SummarizePhases(left.samples);
  const PhaseSummary right_summary = SummarizePhases(right.samples);
  // One summary of both orders the rows: by time, parents first.
  std::vector<PhaseReport> both = left.samples;
  both.insert(both.end(), right.samples.begin(), right.samples.end());
  const auto find = [](const PhaseSummary& summary, const std::string& path) {
    const auto found = std::find_if(
        summary.phases.begin(), summary.phases.end(),
        [&](const PhaseStatistics& phase) { return phase.path == path; });
    return found == summary.phases.end() ? nullptr : &found->duration;
  };
  PhaseDiff diff = {.left_runs = static_cast<int>(left.samples.size()),
                    .right_runs = static_cast<int>(right.samples.size())};
  diff.recording = {.path = "total",
                    .name = "total",
                    .is_separated = AreSeparated(left_summary.recording,
                                                 right_summary.recording)};
  if (diff.left_runs > 0) {
    diff.recording.left_ns = left_summary.recording.median_ns;
  }
  if (diff.right_runs > 0) {
    diff.recording.right_ns = right_summary.recording.median_ns;
  }
  for (const PhaseStatistics& phase : SummarizePhases(both).phases) {
    PhaseDifference row = {
        .path = phase.path, .name = phase.name, .depth = phase.depth};
    const DurationStatistics* const of_left = find(left_summary, phase.path);
    const DurationStatistics* const of_right = find(right_summary, phase.path);
    if (of_left != nullptr) row.left_ns = of_left->median_ns;
    if (of_right != nullptr) row.right_ns = of_right->median_ns;
    row.is_separated = of_left != nullptr && of_right != nullptr &&
                       AreSeparated(*of_left, *of_right);
    diff.phases.push_back(std::move(row));
  }
  return diff;
}

void WritePhaseDiffText(const PhaseDiff& diff,
                        const PhaseDiffTextOptions& options,
                        std::ostream& out) {
  const size_t name_width = std::max<size_t>(
      options.width > kNumberColumns + 20 ? options.width - kNumberColumns : 20,
      20);
  out << FitWidth("phase", name_width)
      << absl::StrFormat("%12s%12s%12s%9s\n", "left ms", "right ms", "delta ms",
                         "delta");
  int hidden = 0;
  for (const PhaseDifference& row : diff.phases) {
    if (std::abs(Delta(row)) < options.min_ns && row.depth > 0) {
      ++hidden;
      continue;
    }
    WriteRow(row, name_width, options, out);
  }
  WriteRow(diff.recording, name_width, options, out);
  out << absl::StrFormat(
      "medians of %d and %d runs; * the samples of the two sides do not"
      " overlap\n",
      diff.left_runs, diff.right_runs);
  if (hidden > 0) {
    out << absl::StrFormat("%d phases differ by less than %.1f ms\n", hidden,
                           options.min_ns / 1e6);
  }
}

void WritePhaseDiffJson(const PhaseDiff& diff, JsonWriter& json) {
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String("firstframe.phase_diff");
  json.Key("version").Int(1);
  json.EndObject();
  json.Key("left_runs").Int(diff.left_runs);
  json.Key("right_runs").Int(diff.right_runs);
  json.Key("recording");
  WriteDifference(diff.recording, json);
  json.Key("phases").BeginArray();
  for (const PhaseDifference& row : diff.phases) WriteDifference(row, json);
  json.EndArray();
  json.EndObject();
}

}  // namespace firstframe
