// perf_report: reads VIDEOX_PERF records and says what they come to.

#include "lib/metrics/perf_report.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/json_document.h"
#include "lib/base/json_writer.h"
#include "lib/base/jsonl_reader.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/cli/tty.h"
#include "lib/metrics/perf_input.h"
#include "lib/metrics/perf_report_text.h"

ABSL_FLAG(bool, include_warmup, false,
          "Count the requests that are marked as warm-up, too.");
ABSL_FLAG(int64_t, skip, 0,
          "{N} Leave out the first N measured requests of each rank.");
ABSL_FLAG(double, straggler, 1.05,
          "{RATIO} A rank is a straggler when its median is over RATIO times "
          "the median of all ranks.");
ABSL_FLAG(bool, diff, false, "Compare two files: the first is the baseline.");
ABSL_FLAG(double, threshold, 0.05,
          "{FRACTION} With --diff: a median that is worse by more is a "
          "regression, if the bootstrap interval agrees.");
ABSL_FLAG(double, confidence, 0.95,
          "{FRACTION} With --diff: confidence of the bootstrap intervals.");
ABSL_FLAG(bool, follow, false,
          "Keep reading as files grow. On a terminal the report is redrawn, "
          "elsewhere each record becomes a log line.");
ABSL_FLAG(double, refresh_s, 1.0, "{S} With --follow: seconds between looks.");
ABSL_FLAG(double, follow_s, 0,
          "{S} With --follow: end after S seconds; 0 goes on.");
ABSL_FLAG(std::string, html, "", "{FILE} Also write a page with plots.");
ABSL_FLAG(std::string, prometheus, "",
          "{FILE} Also write the figures in Prometheus' text format.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "perf_report";
  tool.summary = "Summarises VIDEOX_PERF records of requests and training.";
  tool.arguments = "FILE...";
  tool.description =
      "Reads the JSONL that VideoX-Fun's metrics and this project's write: any "
      "number of ranks and files, '-' for standard input, patterns in quotes. "
      "Lines that do not parse are named and left out; a half-written last "
      "line "
      "is no error. --format=log prints the lines that the program itself "
      "logged. Percentages of a peak come from the records' own peaks.";
  tool.formats = {cli::Format::kText, cli::Format::kLog, cli::Format::kJson,
                  cli::Format::kCsv};
  tool.groups = {{"What counts", {"include_warmup", "skip", "straggler"}},
                 {"Comparison", {"diff", "threshold", "confidence"}},
                 {"Live", {"follow", "refresh_s", "follow_s"}},
                 {"Other outputs", {"html", "prometheus"}}};
  tool.exits = {{cli::Exit::kOk, "done; with --diff: nothing got worse"},
                {cli::Exit::kFinding, "with --diff: a regression"},
                {cli::Exit::kTrouble,
                 "could not answer: usage, I/O, malformed lines, no record"}};
  tool.examples = {
      {"perf_report perf.jsonl.rank*", "all ranks of a run"},
      {"perf_report --diff --threshold=0.03 before.jsonl after.jsonl",
       "exit 1 when a median got 3 % worse"},
      {"perf_report --follow perf.jsonl", "watch a running job"}};
  return tool;
}

ReportOptions Options() {
  return {.include_warmup = absl::GetFlag(FLAGS_include_warmup),
          .skip = absl::GetFlag(FLAGS_skip),
          .straggler_ratio = absl::GetFlag(FLAGS_straggler),
          .keep_records = !absl::GetFlag(FLAGS_html).empty(),
          .keep_samples = absl::GetFlag(FLAGS_diff)};
}

absl::StatusOr<JsonlReader> OpenInput(const std::string& path) {
  if (path != "-") return JsonlReader::Open(path);
  FF_RETURN_IF_ERROR(cli::ClaimStdin());
  return JsonlReader::ForDescriptor(0, "standard input");
}

std::vector<std::string> Paths(const cli::Arguments& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    for (std::string& path : ExpandPattern(cli::ResolvePath(argument))) {
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

std::string RankTag(int64_t rank) {
  return absl::StrCat("[Perf][rank", rank, "]");
}

// What --format=log and csv write while reading.
PerfObserver Observe(cli::Format format, cli::Io& io) {
  PerfObserver observer;
  // A file that is something else would bring one for every line.
  constexpr int kMostNotes = 20;
  observer.on_problem = [&io, notes = 0](const std::string& problem) mutable {
    if (++notes <= kMostNotes) io.Note(problem);
    if (notes == kMostNotes) io.Note("further such lines are not named");
  };
  if (format == cli::Format::kLog) {
    observer.on_request = [&io](const RequestRecord& record) {
      io.out << FormatRequest(RankTag(record.rank), record) << '\n';
    };
    observer.on_window = [&io](const TrainWindowRecord& record) {
      io.out << FormatTrainWindow(RankTag(record.rank), record) << '\n';
    };
  } else if (format == cli::Format::kCsv) {
    io.out << PerfCsvHeader();
    observer.on_request = [&io](const RequestRecord& record) {
      io.out << PerfCsvRow(record);
    };
    observer.on_window = [&io](const TrainWindowRecord& record) {
      io.out << PerfCsvRow(record);
    };
  }
  return observer;
}

template <typename Write>
void WriteDocument(const Write& write, cli::Io& io) {
  io.out << JsonDocument("perf_report", 1, write);
}

void Render(const PerfInputs& inputs, const PerfReport& report, cli::Io& io) {
  if (io.format == cli::Format::kText) {
    WritePerfText(inputs, report, io.out);
  } else if (io.format == cli::Format::kLog) {
    for (const std::string& line : report.SummaryLines()) {
      io.out << line << '\n';
    }
  } else if (io.format == cli::Format::kJson) {
    WriteDocument(
        [&](JsonWriter& json) { WritePerfJson(inputs, report, json); }, io);
  }
}

absl::Status Export(const PerfInputs& inputs, const PerfReport& report) {
  if (const std::string path = absl::GetFlag(FLAGS_html); !path.empty()) {
    FF_RETURN_IF_ERROR(
        WriteOutputFile(cli::ResolvePath(path), PerfHtml(inputs, report)));
  }
  if (const std::string path = absl::GetFlag(FLAGS_prometheus); !path.empty()) {
    FF_RETURN_IF_ERROR(
        WriteOutputFile(cli::ResolvePath(path), PerfPrometheus(report)));
  }
  return absl::OkStatus();
}

absl::StatusOr<cli::Exit> Report(const std::vector<std::string>& paths,
                                 cli::Io& io) {
  PerfReport report(Options());
  PerfInputs inputs;
  const PerfObserver observer = Observe(io.format, io);
  bool failed = false;
  for (const std::string& path : paths) {
    absl::StatusOr<JsonlReader> reader = OpenInput(path);
    absl::Status status = reader.status();
    if (status.ok()) {
      inputs.files.push_back(path);
      status =
          ReadPerfRecords(*reader, /*is_last=*/true, observer, report, inputs);
    }
    if (!status.ok()) {  // one bad input of many: say so, go on
      if (paths.size() == 1) return status;
      io.Note(status.message());
      failed = true;
    }
  }
  if (!report.has_requests() && !report.has_training()) {
    return absl::NotFoundError("no request and no training window was read");
  }
  Render(inputs, report, io);
  FF_RETURN_IF_ERROR(Export(inputs, report));
  failed |= inputs.malformed > 0;
  return failed ? cli::Exit::kTrouble : cli::Exit::kOk;
}

absl::StatusOr<PerfReport> ReadOne(const std::string& path, cli::Io& io,
                                   PerfInputs& inputs) {
  PerfReport report(Options());
  FF_ASSIGN_OR_RETURN(JsonlReader reader, OpenInput(path));
  inputs.files.push_back(path);
  PerfObserver observer;
  observer.on_problem = [&io](const std::string& problem) { io.Note(problem); };
  FF_RETURN_IF_ERROR(
      ReadPerfRecords(reader, /*is_last=*/true, observer, report, inputs));
  return report;
}

absl::StatusOr<cli::Exit> Diff(const std::vector<std::string>& paths,
                               cli::Io& io) {
  if (paths.size() != 2) return cli::UsageError("--diff takes two files");
  const double threshold = absl::GetFlag(FLAGS_threshold);
  const double confidence = absl::GetFlag(FLAGS_confidence);
  if (!(confidence > 0 && confidence < 1) || !(threshold >= 0)) {
    return cli::UsageError(
        "--confidence must lie between 0 and 1, --threshold not below 0");
  }
  PerfInputs inputs;
  FF_ASSIGN_OR_RETURN(const PerfReport left, ReadOne(paths[0], io, inputs));
  FF_ASSIGN_OR_RETURN(const PerfReport right, ReadOne(paths[1], io, inputs));
  const std::vector<PerfDifference> differences =
      ComparePerf(left, right, threshold, confidence);
  if (differences.empty()) {
    return absl::NotFoundError("the files have no measure in common");
  }
  if (io.format == cli::Format::kJson) {
    WriteDocument(
        [&](JsonWriter& json) {
          WritePerfDifferencesJson(differences, threshold, json);
        },
        io);
  } else if (io.format == cli::Format::kText) {
    WritePerfDifferences(differences, threshold, io.out);
  } else {
    return cli::UsageError("--diff has --format=text and json");
  }
  if (inputs.malformed > 0) return cli::Exit::kTrouble;
  for (const PerfDifference& difference : differences) {
    if (difference.is_regression) return cli::Exit::kFinding;
  }
  return cli::Exit::kOk;
}

absl::StatusOr<cli::Exit> Follow(const std::vector<std::string>& paths,
                                 cli::Io& io) {
  const bool redraws = cli::IsTerminal(1) && io.format == cli::Format::kText;
  if (!redraws && io.format == cli::Format::kText)
    io.format = cli::Format::kLog;
  const PerfObserver observer = Observe(io.format, io);
  PerfReport report(Options());
  PerfInputs inputs;
  std::vector<JsonlReader> readers;
  for (const std::string& path : paths) {
    FF_ASSIGN_OR_RETURN(JsonlReader reader, OpenInput(path));
    inputs.files.push_back(path);
    readers.push_back(std::move(reader));
  }
  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  const double limit_s = absl::GetFlag(FLAGS_follow_s);
  int64_t seen = -1;
  while (true) {
    for (JsonlReader& reader : readers) {
      FF_RETURN_IF_ERROR(
          ReadPerfRecords(reader, /*is_last=*/false, observer, report, inputs));
    }
    if (redraws && inputs.lines != seen) {
      io.out << "\x1b[H\x1b[2J";
      Render(inputs, report, io);
    }
    seen = inputs.lines;
    io.out << std::flush;
    FF_RETURN_IF_ERROR(Export(inputs, report));
    const Seconds elapsed = std::chrono::steady_clock::now() - start;
    if (limit_s > 0 && elapsed.count() >= limit_s) break;
    std::this_thread::sleep_for(
        Seconds(std::max(0.05, absl::GetFlag(FLAGS_refresh_s))));
  }
  if (!redraws) Render(inputs, report, io);
  return cli::Exit::kOk;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (arguments.empty()) return cli::UsageError("expected at least one FILE");
  if (!(absl::GetFlag(FLAGS_straggler) > 0)) {
    return cli::UsageError("--straggler: expected a ratio above 0");
  }
  if (absl::GetFlag(FLAGS_skip) < 0) {
    return cli::UsageError("--skip must not be negative");
  }
  if (absl::GetFlag(FLAGS_diff) && absl::GetFlag(FLAGS_follow)) {
    return cli::UsageError("--diff and --follow exclude each other");
  }
  const std::vector<std::string> paths = Paths(arguments);
  if (absl::GetFlag(FLAGS_diff)) return Diff(paths, io);
  if (absl::GetFlag(FLAGS_follow)) return Follow(paths, io);
  return Report(paths, io);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
