// startup_run: where the time of any program goes before its first useful work.

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/base/json_writer.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/base/version.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/cli/tty.h"
#include "lib/host/machine.h"
#include "lib/observe/file_cache.h"
#include "lib/observe/observation.h"
#include "lib/observe/startup_facts.h"
#include "lib/observe/startup_timeline.h"
#include "lib/phase/phase_diff.h"
#include "lib/phase/phase_document.h"
#include "lib/phase/phase_page.h"
#include "lib/phase/phase_text.h"
#include "lib/phase/phase_trace.h"

ABSL_FLAG(int, runs, 1,
          "{N} Run the program N times; the report has all runs.");
ABSL_FLAG(std::string, cache, "as_is",
          "as_is, or cold: run once unreported to learn which libraries, "
          "modules and checkpoints are read, and put those out of the page "
          "cache before each run.");
ABSL_FLAG(bool, diff, false,
          "Compare two JSON reports, LEFT and RIGHT, instead of running.");
ABSL_FLAG(double, min_ms, 1.0,
          "{MS} Leave out imports, loads and calls shorter than this.");
ABSL_FLAG(double, min_share, 0.005,
          "{SHARE} Leave phases below this part of the run out of the text.");
ABSL_FLAG(int, depth, 4,
          "{N} Leave phases nested deeper than this out of the text.");
ABSL_FLAG(std::string, html, "", "{FILE} Also write a page to look at.");
ABSL_FLAG(std::string, trace_out, "",
          "{FILE} Also write the first run for ui.perfetto.dev.");
ABSL_FLAG(std::string, scratch, "/tmp",
          "{DIR} Put the observing library here for the time of the run; must "
          "not be mounted noexec.");

namespace firstframe {
namespace {

constexpr int kMaxRuns = 1000;

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "startup_run";
  tool.summary =
      "Runs a program and shows where its time goes before its first useful "
      "work.";
  tool.arguments = "-- COMMAND [ARGUMENT...]";
  tool.description =
      "The program is not changed: a small library, preloaded, and an import "
      "hook note what happens: exec, dynamic loading, the interpreter's start, "
      "imports, checkpoint files, CUDA's initialisation, code loading, first "
      "copy and kernel, NVTX ranges, exit. Child processes get rows of their "
      "own. Its streams, signals and exit code pass through, so the report "
      "goes "
      "to standard error, or to --output.\n\n"
      "Programs that are linked statically are seen from outside only. Python "
      "with -I, -E or -S does not show its imports.";
  tool.formats = {cli::Format::kText, cli::Format::kJson};
  tool.has_color = true;
  tool.groups = {
      {"What runs", {"runs", "cache", "scratch"}},
      {"Reports", {"html", "trace_out", "min_ms", "min_share", "depth"}},
      {"Comparing", {"diff"}}};
  tool.choices = {{"cache", {"as_is", "cold"}}};
  tool.exits = {
      {cli::Exit::kOk, "the program's own exit code is passed through"},
      {cli::Exit::kTrouble,
       "the program could not be started, or a report not be written"}};
  tool.environment = {
      {"LD_PRELOAD", "kept; our library is put before it"},
      {"PYTHONPATH", "kept; the import hook is put before it"},
      {"NVTX_INJECTION64_PATH", "kept; when it is set, ranges are not seen"}};
  tool.examples = {
      {"startup_run -- python generate.py", "where does the time go?"},
      {"startup_run --runs=5 --output=a.json --format=json -- ./server --once",
       "five runs, to compare later"},
      {"startup_run --diff a.json b.json", "what did the change bring?"}};
  return tool;
}

std::string ContextJson(const cli::Arguments& command) {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Key("command").BeginArray();
  for (const std::string& word : command) json.String(word);
  json.EndArray();
  json.Key("machine");
  WriteJson(ReadMachine(), json);
  json.EndObject();
  return text;
}

absl::StatusOr<PhaseDocument> ReadDocument(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const std::string text, cli::ReadInput(path));
  absl::StatusOr<PhaseDocument> document = ParsePhaseDocument(text);
  if (!document.ok()) return Annotate(document.status(), path);
  return document;
}

absl::StatusOr<cli::Exit> Diff(const cli::Arguments& files, cli::Io& io) {
  if (files.size() != 2) {
    return cli::UsageError("--diff takes two reports, LEFT and RIGHT");
  }
  FF_ASSIGN_OR_RETURN(const PhaseDocument left, ReadDocument(files[0]));
  FF_ASSIGN_OR_RETURN(const PhaseDocument right, ReadDocument(files[1]));
  const PhaseDiff diff = DiffPhases(left, right);
  if (io.format == cli::Format::kJson) {
    std::string text;
    JsonWriter json(&text, JsonWriter::Style::kPretty);
    WritePhaseDiffJson(diff, json);
    io.out << text << '\n';
  } else {
    const double min_ms = absl::GetFlag(FLAGS_min_ms);
    WritePhaseDiffText(diff,
                       {.width = static_cast<size_t>(io.columns),
                        .colour = io.color,
                        .min_ns = static_cast<int64_t>(min_ms * 1e6)},
                       io.out);
  }
  return cli::Exit::kOk;
}

// The runs, as they are reported.
struct Runs {
  PhaseDocument document;
  std::vector<StartupFacts> facts;
  int exit_code = 0;  // of the first run that failed
};

absl::StatusOr<Runs> RunAll(const cli::Arguments& command, const cli::Io& io) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  const bool is_cold = absl::GetFlag(FLAGS_cache) == "cold";
  ObservationOptions options = {
      .argv = command,
      .scratch_folder = cli::ResolvePath(absl::GetFlag(FLAGS_scratch)),
      .ld_preload = variable("LD_PRELOAD"),
      .python_path = variable("PYTHONPATH"),
      .nvtx_injection = variable("NVTX_INJECTION64_PATH"),
      .list_files = is_cold};
  const StartupTimelineOptions timeline = {
      .min_ns = static_cast<int64_t>(absl::GetFlag(FLAGS_min_ms) * 1e6)};
  Runs runs;
  runs.document.tool = "startup_run";
  runs.document.build = GetBuildInfo();
  runs.document.context_json = ContextJson(command);
  std::vector<std::string> files;
  if (is_cold) {
    FF_ASSIGN_OR_RETURN(const Observation scout, Observe(options));
    files = FilesOf(scout.processes);
    options.list_files = false;
  }
  for (int run = 0; run < absl::GetFlag(FLAGS_runs); ++run) {
    std::optional<FileCacheState> cache;
    if (is_cold) cache = EvictFiles(files);
    FF_ASSIGN_OR_RETURN(const Observation observation, Observe(options));
    for (const std::string& problem : observation.problems) io.Note(problem);
    const ProgramExit& launched = observation.launched;
    if (launched.ShellCode() != 0) {
      io.Note(absl::StrCat("run ", run + 1, ": the program ended with code ",
                           launched.ShellCode()));
      if (runs.exit_code == 0) runs.exit_code = launched.ShellCode();
    }
    runs.facts.push_back(GatherStartupFacts(launched, observation.processes));
    runs.facts.back().cache_before = cache;
    std::string facts;
    JsonWriter json(&facts);
    WriteStartupFactsJson(runs.facts.back(), json);
    runs.document.sample_facts_json.push_back(std::move(facts));
    runs.document.samples.push_back(
        BuildStartupTimeline(launched, observation.processes, timeline));
  }
  return runs;
}

void WriteText(const Runs& runs, const cli::Io& io, bool to_stderr,
               std::ostream& out) {
  const bool colour =
      to_stderr ? io.color || cli::UseColor(
                                  "auto", cli::IsTerminal(STDERR_FILENO),
                                  std::getenv("NO_COLOR"), std::getenv("TERM"))
                : io.color;
  const int columns =
      to_stderr ? cli::TerminalColumns(STDERR_FILENO, 100) : io.columns;
  for (size_t i = 0; i < runs.document.samples.size(); ++i) {
    if (runs.document.samples.size() > 1) {
      out << (i > 0 ? "\n" : "") << "run " << i + 1 << " of "
          << runs.document.samples.size() << '\n';
    }
    WritePhaseText(runs.document.samples[i],
                   {.width = static_cast<size_t>(columns),
                    .colour = colour,
                    .min_share = absl::GetFlag(FLAGS_min_share),
                    .max_depth = absl::GetFlag(FLAGS_depth)},
                   out);
    WriteStartupFactsText(runs.facts[i], out);
  }
  if (runs.document.samples.size() > 1) {
    out << '\n';
    WritePhaseSummaryText(runs.document.samples,
                          {.width = static_cast<size_t>(columns),
                           .colour = colour,
                           .min_share = absl::GetFlag(FLAGS_min_share),
                           .max_depth = absl::GetFlag(FLAGS_depth)},
                          out);
  }
}

absl::Status WriteFiles(const Runs& runs, const std::string& title) {
  if (const std::string path = absl::GetFlag(FLAGS_html); !path.empty()) {
    FF_RETURN_IF_ERROR(WriteOutputFile(cli::ResolvePath(path),
                                       RenderPhasePage(runs.document, title)));
  }
  if (const std::string path = absl::GetFlag(FLAGS_trace_out); !path.empty()) {
    std::string trace;
    WritePhaseTrace(runs.document.samples.front(), title, &trace);
    FF_RETURN_IF_ERROR(WriteOutputFile(cli::ResolvePath(path), trace));
  }
  return absl::OkStatus();
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (absl::GetFlag(FLAGS_diff)) return Diff(arguments, io);
  if (arguments.empty()) {
    return cli::UsageError("expected -- COMMAND [ARGUMENT...]");
  }
  const int num_runs = absl::GetFlag(FLAGS_runs);
  if (num_runs < 1 || num_runs > kMaxRuns) {
    return cli::UsageError(
        absl::StrCat("--runs is ", num_runs, ", expected 1 to ", kMaxRuns));
  }
  if (!(absl::GetFlag(FLAGS_min_ms) >= 0 &&
        absl::GetFlag(FLAGS_min_ms) < 1e9)) {
    return cli::UsageError("--min_ms must be 0 or more");
  }
  FF_ASSIGN_OR_RETURN(const Runs runs, RunAll(arguments, io));
  // Standard output is the program's.
  const bool to_stderr = !cli::WasGiven("output");
  std::ostream& out = to_stderr ? io.err : io.out;
  if (io.format == cli::Format::kJson) {
    std::string text;
    JsonWriter json(&text, JsonWriter::Style::kPretty);
    WritePhaseDocument(runs.document, json);
    out << text << '\n';
  } else {
    WriteText(runs, io, to_stderr, out);
  }
  FF_RETURN_IF_ERROR(WriteFiles(runs, absl::StrJoin(arguments, " ")));
  return static_cast<cli::Exit>(runs.exit_code);
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
