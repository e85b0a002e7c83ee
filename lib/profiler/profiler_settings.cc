#include "lib/profiler/profiler_settings.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

using Getenv = absl::FunctionRef<const char*(const char*)>;

bool ReadKnob(Getenv getenv, const char* name, ProfilerSettings* settings) {
  const char* const value = getenv(name);
  if (value == nullptr) return false;
  const std::string word =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(value));
  for (const char* off : {"", "0", "false", "no", "off"}) {
    if (word == off) return false;
  }
  for (const char* on : {"1", "true", "yes", "on"}) {
    if (word == on) return true;
  }
  settings->warnings.push_back(
      absl::StrCat(name, "='", value, "' is neither 0 nor 1 and counts as 1"));
  return true;
}

int ReadCount(Getenv getenv, std::initializer_list<const char*> names,
              int fallback, ProfilerSettings* settings) {
  for (const char* name : names) {
    const char* const value = getenv(name);
    if (value == nullptr) continue;
    int number = 0;
    if (absl::SimpleAtoi(value, &number) && number >= 0) return number;
    settings->warnings.push_back(
        absl::StrCat(name, "='", value, "' is not a count and is ignored"));
  }
  return fallback;
}

std::string ExpandHome(absl::string_view path, Getenv getenv) {
  const char* const home = getenv("HOME");
  if (home == nullptr || path.empty() || path[0] != '~') {
    return std::string(path);
  }
  if (path.size() > 1 && path[1] != '/') return std::string(path);
  return absl::StrCat(home, path.substr(1));
}

}  // namespace

ProfilerSettings ReadProfilerSettings(Getenv getenv) {
  ProfilerSettings settings;
  if (const char* dir = getenv("FASTVIDEO_TORCH_PROFILER_DIR")) {
    settings.dir = ExpandHome(dir, getenv);
  }
  if (const char* regions = getenv("FASTVIDEO_TORCH_PROFILE_REGIONS")) {
    settings.has_regions = true;
    settings.regions = regions;
  }
  settings.record_shapes =
      ReadKnob(getenv, "FASTVIDEO_TORCH_PROFILER_RECORD_SHAPES", &settings);
  settings.with_memory = ReadKnob(
      getenv, "FASTVIDEO_TORCH_PROFILER_WITH_PROFILE_MEMORY", &settings);
  settings.with_stack =
      ReadKnob(getenv, "FASTVIDEO_TORCH_PROFILER_WITH_STACK", &settings);
  settings.with_flops =
      ReadKnob(getenv, "FASTVIDEO_TORCH_PROFILER_WITH_FLOPS", &settings);
  settings.rank = ReadCount(
      getenv, {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}, 0, &settings);
  settings.world_size =
      ReadCount(getenv, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"},
                1, &settings);
  if (settings.has_regions && settings.dir.empty()) {
    settings.warnings.push_back(
        "FASTVIDEO_TORCH_PROFILE_REGIONS is set but "
        "FASTVIDEO_TORCH_PROFILER_DIR is not: nothing is recorded");
  }
  if (!settings.dir.empty() && !settings.has_regions) {
    settings.warnings.push_back(
        "FASTVIDEO_TORCH_PROFILER_DIR is set but "
        "FASTVIDEO_TORCH_PROFILE_REGIONS is not: nothing is recorded");
  }
  return settings;
}

std::vector<std::string> CheckTraceDir(const std::string& dir) {
  std::vector<std::string> warnings;
  if (dir.empty()) return warnings;
  namespace fs = std::filesystem;
  const auto warn = [&](const std::string& what) {
    warnings.push_back(
        absl::StrCat("FASTVIDEO_TORCH_PROFILER_DIR='", dir, "': ", what));
  };
  fs::path path(dir);
  if (!path.is_absolute()) warn("expected an absolute path");
  // The nearest folder that exists decides whether the rest can be made.
  std::error_code error;
  path = fs::absolute(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) {
    path = path.parent_path();
  }
  if (!fs::is_directory(path, error)) {
    warn(absl::StrCat(path.native(), " is not a folder"));
  } else if (::access(path.c_str(), W_OK | X_OK) != 0) {
    warn(absl::StrCat(path.native(),
                      " is not writable: ", std::strerror(errno)));
  }
  return warnings;
}

}  // namespace firstframe
