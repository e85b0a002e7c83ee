#include "lib/observe/observation.h"

#include <errno.h>
#include <stdlib.h>

#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/output_file.h"
#include "lib/base/status_macros.h"
#include "lib/observe/import_hook.h"
#include "lib/observe/shim_bytes.h"

namespace firstframe {
namespace {

// A folder that lives as long as the object.
class ScratchFolder {
 public:
  static absl::StatusOr<ScratchFolder> Create(const std::string& parent) {
    std::string path = absl::StrCat(parent, "/firstframe.XXXXXX");
    if (::mkdtemp(path.data()) == nullptr) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot make a folder in ", parent));
    }
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

  // Returns the path of the new file.
  absl::StatusOr<std::string> Write(absl::string_view name,
                                    absl::string_view contents) const {
    const std::string path = absl::StrCat(path_, "/", name);
    FF_RETURN_IF_ERROR(WriteOutputFile(path, contents));
    return path;
  }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

std::string Joined(const std::string& first, const std::string& rest) {
  return rest.empty() ? first : absl::StrCat(first, ":", rest);
}

}  // namespace

absl::StatusOr<Observation> Observe(const ObservationOptions& options) {
  FF_ASSIGN_OR_RETURN(const ScratchFolder folder,
                      ScratchFolder::Create(options.scratch_folder));
  FF_ASSIGN_OR_RETURN(const std::string library,
                      folder.Write("libfirstframe_startup.so", ShimBytes()));
  const absl::StatusOr<ScratchFolder> memory =
      ScratchFolder::Create(options.memory_folder);
  const std::string& events = memory.ok() ? memory->path() : folder.path();
  std::error_code error;
  const std::string python = absl::StrCat(folder.path(), "/python");
  std::filesystem::create_directory(python, error);
  FF_RETURN_IF_ERROR(
      folder.Write("python/sitecustomize.py", kImportHook).status());
  ProgramOptions program = {
      .arguments = options.argv,
      .set = {{kEventFolderVariable, events},
              {"LD_PRELOAD", Joined(library, options.ld_preload)},
              {"PYTHONPATH", Joined(python, options.python_path)}}};
  if (options.nvtx_injection.empty()) {
    program.set.emplace_back("NVTX_INJECTION64_PATH", library);
  }
  if (options.list_files) {
    program.set.emplace_back(kListFilesVariable, "1");
  }
  Observation observation;
  FF_ASSIGN_OR_RETURN(observation.launched, RunProgram(program));
  observation.processes = ReadObservedProcesses(events, &observation.problems);
  return observation;
}

}  // namespace firstframe
