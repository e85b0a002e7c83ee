#include "lib/observe/file_cache.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "lib/load/data_file.h"
#include "lib/load/residency.h"

namespace firstframe {

std::vector<std::string> FilesOf(absl::Span<const ObservedProcess> processes) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) {
    // Not the virtual library, nor ours, which is gone by now.
    if (absl::StartsWith(path, "/") &&
        !absl::EndsWith(path, "/libfirstframe_startup.so")) {
      paths.push_back(path);
    }
  };
  for (const ObservedProcess& process : processes) {
    for (const ObservedEvent& event : process.events) {
      if (event.kind == EventKind::kLibrary) add(event.name);
    }
    for (const ObservedFile& file : process.files) add(file.path);
    for (const std::string& path : process.module_files) add(path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

FileCacheState EvictFiles(absl::Span<const std::string> paths) {
  FileCacheState state;
  Residency sum = {.total_pages = 0, .cached_pages = 0, .dirty_pages = 0};
  for (const std::string& path : paths) {
    const absl::StatusOr<DataFile> file = DataFile::Open(path);
    if (!file.ok()) continue;
    // What stays is seen by the probe, whatever the reason.
    EvictFromPageCache(*file).IgnoreError();
    AddResidency(ProbeResidency(*file), &sum);
    ++state.files;
    state.size_bytes += static_cast<int64_t>(file->size_bytes());
  }
  if (state.files > 0) state.resident_share = sum.fraction();
  return state;
}

}  // namespace firstframe
