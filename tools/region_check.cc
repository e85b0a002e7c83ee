// region_check: checks the names of profiler regions before a long job does.

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/profiler/profiler_settings.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_report.h"
#include "lib/regions/region_selection.h"
#include "lib/regions/registry_file.h"
#include "lib/regions/source_check.h"
#include "lib/regions/source_tree.h"
#include "lib/regions/trace_regions.h"

ABSL_FLAG(bool, list, false, "List the registered regions.");
ABSL_FLAG(bool, env, false,
          "Check FastVideo's profiling variables in this environment.");
ABSL_FLAG(std::string, regions, "",
          "{LIST} Check this setting of FASTVIDEO_TORCH_PROFILE_REGIONS.");
ABSL_FLAG(std::string, source, "",
          "{DIR} Check the names that the sources below DIR register, use, "
          "document and ask for.");
ABSL_FLAG(std::string, exclude, "",
          "{GLOBS} Leave out paths below --source that match any of these "
          "patterns, separated by commas.");
ABSL_FLAG(std::string, trace, "",
          "{FILE} Say which regions a trace contains ('-': standard input).");
ABSL_FLAG(std::string, registry, "",
          "{FILE} Add the regions of this textproto to the built-in ones.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "region_check";
  tool.summary =
      "Checks profiler regions: settings, sources and traces against the "
      "registry.";
  tool.description =
      "A misspelt region records nothing, and a job finds out at its end. This "
      "tool says so beforehand, with the nearest real name. Each of --list, "
      "--env, --regions, --source and --trace is one check; several may be "
      "given together.";
  tool.formats = {cli::Format::kText, cli::Format::kJsonl,
                  cli::Format::kGithub};
  tool.groups = {{"Checks", {"list", "env", "regions", "source", "trace"}},
                 {"What counts", {"registry", "exclude"}}};
  tool.exits = {{cli::Exit::kOk, "everything checked is as it should be"},
                {cli::Exit::kFinding, "something was found; it is listed"},
                {cli::Exit::kTrouble, "could not check (usage, I/O)"}};
  tool.environment = {
      {"FASTVIDEO_TORCH_PROFILE_REGIONS", "the regions to record (--env)"},
      {"FASTVIDEO_TORCH_PROFILER_DIR", "where traces go (--env)"}};
  tool.examples = {
      {"region_check --env", "before a job: is the setting what I mean?"},
      {"region_check --source=FastVideo --format=github",
       "in a workflow: annotate wrong names"},
      {"region_check --trace=trace.json.gz",
       "after a job: what was recorded?"}};
  return tool;
}

RegionReportFormat ReportFormat(cli::Format format) {
  switch (format) {
    case cli::Format::kJsonl:
      return RegionReportFormat::kJsonl;
    case cli::Format::kGithub:
      return RegionReportFormat::kGithub;
    default:
      return RegionReportFormat::kText;
  }
}

bool CheckSetting(const std::string& setting, std::vector<std::string> warnings,
                  const RegionRegistry& registry, cli::Io& io) {
  const RegionSelection selection = RegionSelection::Parse(setting, registry);
  warnings.insert(warnings.end(), selection.warnings().begin(),
                  selection.warnings().end());
  WriteSelection(setting, selection, warnings, ReportFormat(io.format), io.out);
  return warnings.empty();
}

bool CheckEnvironment(const RegionRegistry& registry, cli::Io& io) {
  const ProfilerSettings settings =
      ReadProfilerSettings([](const char* name) { return std::getenv(name); });
  std::vector<std::string> warnings = settings.warnings;
  for (std::string& warning : CheckTraceDir(settings.dir)) {
    warnings.push_back(std::move(warning));
  }
  return CheckSetting(settings.regions, std::move(warnings), registry, io);
}

absl::StatusOr<bool> CheckSource(const RegionRegistry& registry,
                                 const std::vector<std::string>& extra,
                                 cli::Io& io) {
  SourceScanOptions options;
  options.exclude =
      absl::StrSplit(absl::GetFlag(FLAGS_exclude), ',', absl::SkipEmpty());
  options.threads = static_cast<int>(std::thread::hardware_concurrency());
  FF_ASSIGN_OR_RETURN(
      const SourceScan scan,
      ScanSourceTree(cli::ResolvePath(absl::GetFlag(FLAGS_source)), options));
  for (const std::string& path : scan.skipped) {
    io.Note(path + ": not read");
  }
  const SourceCheck check = CheckSources(scan, registry, extra);
  WriteSourceCheck(scan, check, ReportFormat(io.format), io.out);
  return check.findings.empty();
}

absl::StatusOr<bool> CheckTrace(const RegionRegistry& registry, cli::Io& io) {
  const std::string path = absl::GetFlag(FLAGS_trace);
  if (path == "-") FF_RETURN_IF_ERROR(cli::ClaimStdin());
  FF_ASSIGN_OR_RETURN(const std::vector<TracedRegion> regions,
                      FindTracedRegions(cli::ResolvePath(path), registry));
  WriteTracedRegions(path, regions, ReportFormat(io.format), io.out);
  bool good = !regions.empty();
  for (const TracedRegion& region : regions) good &= region.registered;
  return good;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (!arguments.empty()) {
    return cli::UsageError("unexpected argument '" + arguments[0] + "'");
  }
  const bool has_regions = cli::WasGiven("regions");
  const bool has_source = !absl::GetFlag(FLAGS_source).empty();
  const bool has_trace = !absl::GetFlag(FLAGS_trace).empty();
  if (!absl::GetFlag(FLAGS_list) && !absl::GetFlag(FLAGS_env) && !has_regions &&
      !has_source && !has_trace) {
    return cli::UsageError(
        "expected one of --list, --env, --regions, --source, --trace");
  }
  RegionRegistry registry = RegionRegistry::Default();
  std::vector<std::string> extra;
  if (const std::string file = absl::GetFlag(FLAGS_registry); !file.empty()) {
    FF_RETURN_IF_ERROR(AddRegionsFromFile(cli::ResolvePath(file), &registry));
    const RegionRegistry builtin = RegionRegistry::Default();
    for (const std::string& name : registry.Names()) {
      if (builtin.Find(name) == nullptr) extra.push_back(name);
    }
  }
  bool good = true;
  if (absl::GetFlag(FLAGS_list)) {
    WriteRegistry(registry, ReportFormat(io.format), io.out);
  }
  if (absl::GetFlag(FLAGS_env)) good &= CheckEnvironment(registry, io);
  if (has_regions) {
    good &= CheckSetting(absl::GetFlag(FLAGS_regions), {}, registry, io);
  }
  if (has_source) {
    FF_ASSIGN_OR_RETURN(const bool clean, CheckSource(registry, extra, io));
    good &= clean;
  }
  if (has_trace) {
    FF_ASSIGN_OR_RETURN(const bool clean, CheckTrace(registry, io));
    good &= clean;
  }
  return good ? cli::Exit::kOk : cli::Exit::kFinding;
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
