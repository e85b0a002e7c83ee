// profile_run: runs an unmodified program and records its regions and the GPU
// work in them.

#include <limits.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/status_macros.h"
#include "lib/cli/input.h"
#include "lib/cli/tool.h"
#include "lib/host/run_program.h"
#include "lib/profiler/profile_report.h"
#include "lib/profiler/profiler_settings.h"
#include "lib/profiler/trace_finalize.h"
#include "lib/regions/region_names.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"
#include "lib/regions/registry_file.h"

ABSL_FLAG(std::string, dir, "",
          "{DIR} Where the traces go. Default: FASTVIDEO_TORCH_PROFILER_DIR, "
          "else ./profile.");
ABSL_FLAG(std::string, regions, "",
          "{LIST} Regions to record: names, patterns, exclusions. Default: "
          "FASTVIDEO_TORCH_PROFILE_REGIONS.");
ABSL_FLAG(bool, all, false, "Record everything, in regions or not.");
ABSL_FLAG(std::string, registry, "",
          "{FILE} Add the regions of this textproto to the built-in ones.");
ABSL_FLAG(bool, gpu, true, "Record kernels and copies, not spans alone.");
ABSL_FLAG(bool, hold_cupti, true,
          "Hold CUPTI against other tools. Without, recording costs less, and "
          "a profiler inside the program may take the records.");
ABSL_FLAG(double, max_gb, 4, "Size of a process's trace, gigabytes.");
ABSL_FLAG(double, max_device_mb, 64,
          "Device memory for CUPTI's buffers, megabytes.");
ABSL_FLAG(double, max_seconds, 0, "Time recorded, seconds; 0: no limit.");
ABSL_FLAG(bool, rank_from_env, true,
          "Take the rank from RANK, OMPI_COMM_WORLD_RANK or SLURM_PROCID.");
ABSL_FLAG(std::string, steps, "",
          "{LIST} Regions of which each entry is a step (ProfilerStep#N, which "
          "HTA and TensorBoard count by). Default: training_step, "
          "training_train_one_step.");
ABSL_FLAG(std::string, inject, "",
          "{FILE} libfirstframe_inject.so. Default: beside this program.");
ABSL_FLAG(int, top, 5, "Kernels shown for each region.");

namespace firstframe {
namespace {

cli::Tool Describe() {
  cli::Tool tool;
  tool.name = "profile_run";
  tool.summary =
      "Runs a program and records its regions and the GPU work in them.";
  tool.arguments = "-- COMMAND...";
  tool.description =
      "The program needs no change: regions are the NVTX ranges it pushes "
      "(torch.cuda.nvtx.range_push; FastVideo pushes fastvideo.region::NAME), "
      "kernels come from CUPTI. Programs it starts are recorded too, each into "
      "files of its own. The report goes to standard error; the program keeps "
      "its own streams, gets the signals sent here, and its exit status is "
      "passed on.";
  tool.has_output = false;
  tool.groups = {{"What to record",
                  {"regions", "all", "registry", "gpu", "hold_cupti",
                   "rank_from_env", "steps"}},
                 {"Where, and how much",
                  {"dir", "max_gb", "max_device_mb", "max_seconds"}},
                 {"Other", {"inject", "top"}}};
  tool.exits = {{cli::Exit::kOk, "the program's own status, whatever it is"},
                {cli::Exit::kTrouble, "usage, or the program was not started"}};
  tool.environment = {
      {"FASTVIDEO_TORCH_PROFILE_REGIONS", "the regions, without --regions"},
      {"FASTVIDEO_TORCH_PROFILER_DIR", "the folder, without --dir"}};
  tool.examples = {
      {"profile_run --regions='inference_*' -- python generate.py",
       "the denoising loop's kernels, and nothing else's"},
      {"profile_run --all --dir=traces -- ./my_program", "everything"}};
  return tool;
}

// Beside the program itself, or where Bazel keeps a data dependency.
absl::StatusOr<std::string> FindInjection() {
  const std::string given = absl::GetFlag(FLAGS_inject);
  std::vector<std::string> candidates;
  if (!given.empty()) {
    candidates.push_back(cli::ResolvePath(given));
  } else {
    char path[PATH_MAX] = {};
    if (::readlink("/proc/self/exe", path, sizeof(path) - 1) > 0) {
      std::string folder(path);
      folder.resize(folder.rfind('/'));
      candidates = {
          absl::StrCat(folder, "/libfirstframe_inject.so"),
          absl::StrCat(folder, "/../lib/libfirstframe_inject.so"),
          absl::StrCat(folder, "/../lib/profiler/libfirstframe_inject.so")};
    }
  }
  for (const std::string& candidate : candidates) {
    char real[PATH_MAX];
    if (::realpath(candidate.c_str(), real) != nullptr)
      return std::string(real);
  }
  return absl::NotFoundError(absl::StrCat(
      given.empty() ? "libfirstframe_inject.so is not beside this program"
                    : absl::StrCat(given, ": no such file"),
      "; name it with --inject"));
}

// What the program's environment gets.
absl::StatusOr<ProgramOptions> Prepare(const cli::Arguments& arguments,
                                       const std::string& dir,
                                       const RegionSelection& selection,
                                       const RegionRegistry& registry) {
  FF_ASSIGN_OR_RETURN(const std::string injection, FindInjection());
  ProgramOptions options;
  options.arguments = arguments;
  const auto number = [](double value) {
    return absl::StrCat(static_cast<int64_t>(value));
  };
  options.set = {
      {"NVTX_INJECTION64_PATH", injection},
      {"FIRSTFRAME_PROFILE_DIR", dir},
      {"FIRSTFRAME_PROFILE_REGIONS", selection.ToString()},
      {"FIRSTFRAME_PROFILE_REGISTRY", FormatRegionNames(registry)},
      {"FIRSTFRAME_PROFILE_ALL", absl::GetFlag(FLAGS_all) ? "1" : "0"},
      {"FIRSTFRAME_PROFILE_GPU", absl::GetFlag(FLAGS_gpu) ? "1" : "0"},
      {"FIRSTFRAME_PROFILE_HOLD_CUPTI",
       absl::GetFlag(FLAGS_hold_cupti) ? "1" : "0"},
      {"FIRSTFRAME_PROFILE_RANK",
       absl::GetFlag(FLAGS_rank_from_env) ? "env" : "0"},
      {"FIRSTFRAME_PROFILE_MAX_BYTES",
       number(absl::GetFlag(FLAGS_max_gb) * 1e9)},
      {"FIRSTFRAME_PROFILE_MAX_DEVICE_BYTES",
       number(absl::GetFlag(FLAGS_max_device_mb) * 1e6)},
      {"FIRSTFRAME_PROFILE_MAX_SECONDS",
       absl::StrCat(absl::GetFlag(FLAGS_max_seconds))}};
  if (absl::GetFlag(FLAGS_gpu)) {
    options.set.emplace_back("CUDA_INJECTION64_PATH", injection);
  }
  // FastVideo's own profiler would hold CUPTI, and record no kernel with it.
  options.unset = {"FASTVIDEO_TORCH_PROFILER_DIR"};
  return options;
}

absl::StatusOr<RegionRegistry> ReadRegistry() {
  RegionRegistry registry = RegionRegistry::Default();
  if (const std::string file = absl::GetFlag(FLAGS_registry); !file.empty()) {
    FF_RETURN_IF_ERROR(AddRegionsFromFile(cli::ResolvePath(file), &registry));
  }
  return registry;
}

RegionSelection Select(const ProfilerSettings& settings,
                       const RegionRegistry& registry) {
  if (cli::WasGiven("regions")) {
    return RegionSelection::Parse(
        absl::GetFlag(FLAGS_regions), registry,
        {.allow_unregistered = true, .setting = "--regions"});
  }
  return RegionSelection::Parse(settings.regions, registry);
}

// As file systems stamp files: by the clock's last tick, which is up to some
// milliseconds ago.
int64_t FileTimeNs() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

absl::StatusOr<cli::Exit> Run(const cli::Arguments& arguments, cli::Io& io) {
  if (arguments.empty()) return cli::UsageError("expected -- COMMAND");
  const ProfilerSettings settings =
      ReadProfilerSettings([](const char* name) { return std::getenv(name); });
  FF_ASSIGN_OR_RETURN(const RegionRegistry registry, ReadRegistry());
  const RegionSelection selection = Select(settings, registry);
  if (!absl::GetFlag(FLAGS_all)) {
    for (const std::string& warning : selection.warnings()) io.Note(warning);
  }
  std::string dir = absl::GetFlag(FLAGS_dir);
  if (dir.empty()) dir = settings.dir.empty() ? "profile" : settings.dir;
  dir = cli::ResolvePath(dir);
  char absolute[PATH_MAX];
  if (dir[0] != '/' && ::getcwd(absolute, sizeof(absolute)) != nullptr) {
    dir = absl::StrCat(absolute, "/", dir);
  }
  FF_ASSIGN_OR_RETURN(const ProgramOptions options,
                      Prepare(arguments, dir, selection, registry));
  const int64_t start_ns = FileTimeNs();
  FF_ASSIGN_OR_RETURN(const ProgramExit exit, RunProgram(options));
  std::vector<FinalizedProfile> profiles;
  FinalizeOptions finalize = {.steps = absl::GetFlag(FLAGS_steps)};
  for (const std::string& stem : FindProfiles(dir, start_ns)) {
    absl::StatusOr<FinalizedProfile> profile = FinalizeProfile(stem, finalize);
    if (!profile.ok()) {
      io.Note(std::string(profile.status().message()));
      continue;
    }
    finalize.taken_ranks.insert(profile->rank);
    profiles.push_back(*std::move(profile));
  }
  if (!io.quiet) {
    WriteProfileReport(profiles, exit, absl::GetFlag(FLAGS_top), io.err);
    if (profiles.empty()) {
      io.Note(
          absl::StrCat("nothing was recorded: the program pushed no NVTX "
                       "range and used no CUDA device (",
                       dir, ")"));
    }
  }
  // Any status, not the four that a tool of ours has.
  return static_cast<cli::Exit>(exit.ShellCode());
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  return firstframe::cli::Main(argc, argv, firstframe::Describe(),
                               firstframe::Run);
}
