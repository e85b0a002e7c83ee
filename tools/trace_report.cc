// trace_report: where a trace's time goes, by device, region and kernel; and
// traces made sound, smaller, joined or safe to share.

#include "lib/trace/trace_report.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/trace/read_twice.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_diff.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_start.h"
#include "lib/trace/trace_summary.h"
#include "lib/trace/trace_transform.h"
#include "lib/trace/trace_validate.h"

ABSL_FLAG(std::string, region, "",
          "{GLOB} Summarise (or split by) the regions that match.");
ABSL_FLAG(bool, annotations, false,
          "Count every annotation as a region, not named regions alone.");
ABSL_FLAG(double, since_s, -1,
          "Leave out what starts earlier, in seconds from the first event.");
ABSL_FLAG(double, until_s, -1,
          "Leave out what ends later, in seconds from the first event.");
ABSL_FLAG(int, top, 10, "Kernels and operators shown.");
ABSL_FLAG(bool, diff, false, "Compare two traces; exit 1 when they differ.");
ABSL_FLAG(double, threshold, 0.05,
          "With --diff: changes of a smaller part count as the same.");
ABSL_FLAG(std::string, validate, "",
          "{LIST} Say whether perfetto, hta and tensorboard can read the "
          "traces; exit 1 when one cannot.");
ABSL_FLAG(std::string, repair, "",
          "{FILE} Write the events that can be read as a sound trace.");
ABSL_FLAG(std::string, redact, "",
          "{FILE} Write the trace without names of people, machines and "
          "folders, and without prompts.");
ABSL_FLAG(std::string, merge, "",
          "{FILE} Write all traces as one, on one clock.");
ABSL_FLAG(std::string, align, "clock",
          "With --merge: 'clock' trusts each trace's base time, 'start' puts "
          "the first events together.");
ABSL_FLAG(
    std::string, split, "",
    "{BY} Write parts by 'time', 'region' or, of a merged trace, 'rank'.");
ABSL_FLAG(std::string, stem, "",
          "{PATH} With --split: how the parts' names begin. Default: the "
          "trace's name.");
ABSL_FLAG(double, window_s, 1, "With --split=time: length of a part, seconds.");
ABSL_FLAG(std::string, tmpdir, "/tmp", "{DIR} Where large traces are sorted.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "trace_report";
  tool.summary =
      "Shows where the time of torch/Kineto and Firstframe traces goes.";
  tool.arguments = "FILE...";
  tool.description =
      "Reads .json, .json.gz and .pftrace in constant memory, whatever their "
      "size and state. Work of a device counts for the region that launched "
      "it.";
  tool.formats = {cli::Format::kText, cli::Format::kJson, cli::Format::kJsonl,
                  cli::Format::kHtml};
  tool.groups = {
      {"Report", {"region", "annotations", "since_s", "until_s", "top"}},
      {"Compare", {"diff", "threshold"}},
      {"Check", {"validate"}},
      {"Write traces",
       {"repair", "redact", "merge", "align", "split", "stem", "window_s"}}};
  tool.choices = {{"align", {"clock", "start"}}};
  tool.exits = {
      {cli::Exit::kOk,
       "done; with --diff the same; with --validate "
       "readable by all"},
      {cli::Exit::kFinding, "differs, or not readable by all"},
      {cli::Exit::kTrouble, "could not answer (usage, I/O, no trace)"}};
  tool.examples = {
      {"trace_report trace.json.gz --region='inference_*'",
       "GPU busy, idle and launch-bound time of the denoising regions"},
      {"trace_report --diff before.json after.json",
       "which regions and kernels changed beyond their noise"},
      {"trace_report --merge=all.json.gz rank*.json.gz",
       "all ranks on one timeline"}};
  return tool;
}

TraceReportOptions ReportOptions(const cli::Io& io) {
  TraceReportOptions options;
  options.top = static_cast<size_t>(std::max(absl::GetFlag(FLAGS_top), 0));
  options.columns = io.columns;
  return options;
}

// `start_ns` plus seconds, at most the last time there is.
int64_t After(int64_t start_ns, double seconds) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const double room = static_cast<double>(kLast) -
                      static_cast<double>(std::max<int64_t>(start_ns, 0));
  // A double above 2^53 is coarse: keep well away from the end.
  if (seconds * 1e9 >= room - 4096) return kLast;
  return start_ns + static_cast<int64_t>(seconds * 1e9);
}

absl::StatusOr<TraceSummary> Analyze(const std::string& path) {
  TraceAnalyzerOptions options;
  options.region_glob = absl::GetFlag(FLAGS_region);
  options.all_annotations = absl::GetFlag(FLAGS_annotations);
  options.temporary_folder = absl::GetFlag(FLAGS_tmpdir);
  options.top = static_cast<size_t>(std::max(absl::GetFlag(FLAGS_top), 20));
  const double since = absl::GetFlag(FLAGS_since_s);
  const double until = absl::GetFlag(FLAGS_until_s);
  if (std::isnan(since) || std::isnan(until)) {
    return cli::UsageError("--since_s and --until_s take seconds, not nan");
  }
  if (since >= 0 || until >= 0) {
    FF_RETURN_IF_ERROR(CheckReadableTwice(path));
    FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(path));
    FF_ASSIGN_OR_RETURN(const int64_t start, FindTraceStart(*reader));
    if (since >= 0) options.since_ns = After(start, since);
    if (until >= 0) options.until_ns = After(start, until);
  }
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(path));
  return AnalyzeTrace(*reader, options);
}

absl::StatusOr<cli::Exit> Diff(const std::vector<std::string>& paths,
                               cli::Io& io) {
  if (paths.size() != 2) return cli::UsageError("--diff compares two traces");
  FF_ASSIGN_OR_RETURN(const TraceSummary a, Analyze(paths[0]));
  FF_ASSIGN_OR_RETURN(const TraceSummary b, Analyze(paths[1]));
  const std::vector<DiffRow> rows =
      DiffTraces(a, b, {.threshold = absl::GetFlag(FLAGS_threshold)});
  if (io.format == cli::Format::kJson) {
    io.out << DiffJson(a, b, rows);
  } else {
    WriteDiffText(rows, io.out);
  }
  return Differs(rows) ? cli::Exit::kFinding : cli::Exit::kOk;
}

absl::StatusOr<cli::Exit> Validate(const std::vector<std::string>& paths,
                                   cli::Io& io) {
  auto consumers = ParseTraceConsumers(absl::GetFlag(FLAGS_validate));
  if (!consumers.ok()) {
    return cli::UsageError(
        absl::StrCat("--validate: ", consumers.status().message()));
  }
  TraceValidateOptions options;
  options.consumers = *consumers;
  options.temporary_folder = absl::GetFlag(FLAGS_tmpdir);
  std::vector<TraceValidation> validations;
  for (const std::string& path : paths) {
    FF_ASSIGN_OR_RETURN(TraceValidation validation,
                        ValidateTrace(path, options));
    validations.push_back(std::move(validation));
  }
  for (const TraceConsumer consumer : *consumers) {
    if (consumer == TraceConsumer::kHta) CheckRanks(&validations);
  }
  bool valid = true;
  for (const TraceValidation& validation : validations) {
    valid &= !validation.HasErrors();
    if (io.format == cli::Format::kText) {
      WriteValidationText(validation, io.out);
    } else {
      WriteValidationJsonl(validation, *consumers, io.out);
    }
  }
  return valid ? cli::Exit::kOk : cli::Exit::kFinding;
}

void WriteWritten(const std::vector<WrittenTrace>& written, cli::Io& io) {
  for (const WrittenTrace& trace : written) {
    io.out << trace.path << ": " << trace.event_count << " events\n";
  }
}

std::string DefaultStem(std::string path) {
  for (const char* ending : {".gz", ".json", ".pftrace"}) {
    if (absl::EndsWith(path, ending)) {
      path.resize(path.size() - std::string(ending).size());
    }
  }
  return path;
}

absl::StatusOr<std::vector<WrittenTrace>> Split(const std::string& path) {
  TraceSplitOptions options;
  const std::string by = absl::GetFlag(FLAGS_split);
  if (by == "time") {
    options.by = TraceSplit::kTime;
  } else if (by == "region") {
    options.by = TraceSplit::kRegion;
  } else if (by == "rank") {
    options.by = TraceSplit::kRank;
  } else {
    return cli::UsageError("--split takes time, region or rank, not '" + by +
                           "'");
  }
  options.region_glob = absl::GetFlag(FLAGS_region);
  const double window = absl::GetFlag(FLAGS_window_s);
  if (!(window >= 1e-9 && window <= 1e9)) {
    return cli::UsageError("--window_s: expected 1e-9 to 1e9 seconds");
  }
  options.window_ns = static_cast<int64_t>(absl::GetFlag(FLAGS_window_s) * 1e9);
  options.temporary_folder = absl::GetFlag(FLAGS_tmpdir);
  std::string stem = cli::ResolvePath(absl::GetFlag(FLAGS_stem));
  if (absl::GetFlag(FLAGS_stem).empty()) {
    if (path == "-") return cli::UsageError("--split of '-' needs --stem");
    stem = DefaultStem(path);
  }
  return SplitTrace(path, stem, options);
}

std::optional<std::vector<WrittenTrace>> One(WrittenTrace trace) {
  return std::vector<WrittenTrace>{std::move(trace)};
}

// Runs the one writing mode that was asked for; nothing when none was.
absl::StatusOr<std::optional<std::vector<WrittenTrace>>> WriteTraces(
    const std::vector<std::string>& paths) {
  const std::string repair = absl::GetFlag(FLAGS_repair);
  const std::string redact = absl::GetFlag(FLAGS_redact);
  const std::string merge = absl::GetFlag(FLAGS_merge);
  if (!merge.empty()) {
    const TraceAlign align = absl::GetFlag(FLAGS_align) == "start"
                                 ? TraceAlign::kStart
                                 : TraceAlign::kClock;
    FF_ASSIGN_OR_RETURN(WrittenTrace trace,
                        MergeTraces(paths, cli::ResolvePath(merge), align));
    return One(std::move(trace));
  }
  if (repair.empty() && redact.empty() && absl::GetFlag(FLAGS_split).empty()) {
    return std::nullopt;
  }
  if (paths.size() != 1) {
    return cli::UsageError("--repair, --redact and --split take one trace");
  }
  if (!repair.empty()) {
    FF_ASSIGN_OR_RETURN(WrittenTrace trace,
                        RepairTrace(paths[0], cli::ResolvePath(repair)));
    return One(std::move(trace));
  }
  if (!redact.empty()) {
    FF_ASSIGN_OR_RETURN(WrittenTrace trace,
                        RedactTrace(paths[0], cli::ResolvePath(redact)));
    return One(std::move(trace));
  }
  FF_ASSIGN_OR_RETURN(std::vector<WrittenTrace> parts, Split(paths[0]));
  return std::make_optional(std::move(parts));
}

// A form that a mode does not write must not turn into another one silently.
absl::Status CheckFormat(cli::Format format) {
  if (format == cli::Format::kText) return absl::OkStatus();
  if (absl::GetFlag(FLAGS_diff)) {
    if (format == cli::Format::kJson) return absl::OkStatus();
    return cli::UsageError("--diff writes --format=text or json");
  }
  if (!absl::GetFlag(FLAGS_validate).empty()) {
    if (format == cli::Format::kJsonl) return absl::OkStatus();
    return cli::UsageError("--validate writes --format=text or jsonl");
  }
  for (const auto& path :
       {absl::GetFlag(FLAGS_repair), absl::GetFlag(FLAGS_redact),
        absl::GetFlag(FLAGS_merge), absl::GetFlag(FLAGS_split)}) {
    if (!path.empty()) {
      return cli::UsageError(
          "--repair, --redact, --merge and --split write --format=text");
    }
  }
  if (format != cli::Format::kJsonl) return absl::OkStatus();
  return cli::UsageError("a report is --format=text, json or html");
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (arguments.empty()) return cli::UsageError("expected a trace FILE");
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    if (argument == "-") FF_RETURN_IF_ERROR(cli::ClaimStdin());
    paths.push_back(cli::ResolvePath(argument));
  }
  const int modes =
      absl::GetFlag(FLAGS_diff) + !absl::GetFlag(FLAGS_validate).empty() +
      !absl::GetFlag(FLAGS_repair).empty() +
      !absl::GetFlag(FLAGS_redact).empty() +
      !absl::GetFlag(FLAGS_merge).empty() + !absl::GetFlag(FLAGS_split).empty();
  if (modes > 1) {
    return cli::UsageError(
        "expected one of --diff, --validate, --repair, --redact, --merge, "
        "--split");
  }
  FF_RETURN_IF_ERROR(CheckFormat(io.format));
  if (absl::GetFlag(FLAGS_diff)) return Diff(paths, io);
  if (!absl::GetFlag(FLAGS_validate).empty()) return Validate(paths, io);
  FF_ASSIGN_OR_RETURN(const auto written, WriteTraces(paths));
  if (written.has_value()) {
    WriteWritten(*written, io);
    return cli::Exit::kOk;
  }
  std::vector<TraceSummary> summaries;
  for (const std::string& path : paths) {
    FF_ASSIGN_OR_RETURN(TraceSummary summary, Analyze(path));
    summaries.push_back(std::move(summary));
  }
  const TraceReportOptions options = ReportOptions(io);
  switch (io.format) {
    case cli::Format::kJson:
      io.out << TraceReportJson(summaries, options);
      break;
    case cli::Format::kHtml:
      io.out << TraceReportHtml(summaries, options);
      break;
    default:
      for (const TraceSummary& summary : summaries) {
        WriteTraceText(summary, options, io.out);
      }
  }
  return cli::Exit::kOk;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
