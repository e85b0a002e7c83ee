#include "lib/activation/dump_source.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/tensor/npy.h"

namespace firstframe {
namespace {

namespace fs = std::filesystem;

using Wants = absl::FunctionRef<bool(absl::string_view)>;
using Visit =
    absl::FunctionRef<absl::Status(absl::string_view, const TensorView&)>;

bool IsCheckpointFile(const std::string& path) {
  return absl::EndsWith(path, ".safetensors") ||
         absl::EndsWith(path, ".safetensors.index.json");
}

absl::Status VisitCheckpoint(const std::string& path, Wants wants,
                             Visit visit) {
  FF_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::Open(path));
  FF_ASSIGN_OR_RETURN(const CheckpointReader reader,
                      CheckpointReader::Open(checkpoint));
  for (const CheckpointEntry entry : checkpoint.entries()) {
    const std::string& name = checkpoint.tensor(entry).name;
    if (!wants(name)) continue;
    FF_ASSIGN_OR_RETURN(const HostTensor tensor, reader.Read(entry));
    FF_RETURN_IF_ERROR(visit(name, tensor.view()));
  }
  return absl::OkStatus();
}

absl::Status VisitNpy(const std::string& path, Wants wants, Visit visit) {
  const std::string name = fs::path(path).stem();
  if (!wants(name)) return absl::OkStatus();
  FF_ASSIGN_OR_RETURN(const HostTensor tensor, ReadNpy(path));
  return visit(name, tensor.view());
}

absl::Status VisitNpz(const std::string& path, Wants wants, Visit visit) {
  FF_ASSIGN_OR_RETURN(const auto arrays, ReadNpz(path));
  for (const auto& [name, tensor] : arrays) {
    if (wants(name)) FF_RETURN_IF_ERROR(visit(name, tensor.view()));
  }
  return absl::OkStatus();
}

absl::Status VisitFile(const std::string& path, Wants wants, Visit visit) {
  if (IsCheckpointFile(path)) return VisitCheckpoint(path, wants, visit);
  if (absl::EndsWith(path, ".npy")) return VisitNpy(path, wants, visit);
  if (absl::EndsWith(path, ".npz")) return VisitNpz(path, wants, visit);
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": expected .safetensors, .npy, .npz or a folder of them"));
}

// Files of a folder that can be read, sorted.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string path = it->path();
    if (IsCheckpointFile(path) || absl::EndsWith(path, ".npy") ||
        absl::EndsWith(path, ".npz")) {
      files.push_back(path);
    }
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot list ", folder));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandInputs(
    const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    std::error_code ignored;
    if (fs::exists(pattern, ignored)) {
      paths.push_back(pattern);
      continue;
    }
    glob_t found = {};
    const int code = ::glob(pattern.c_str(), 0, nullptr, &found);
    const auto free = absl::MakeCleanup([&] { ::globfree(&found); });
    if (code != 0 || found.gl_pathc == 0) {
      return absl::NotFoundError(absl::StrCat(pattern, ": no such file"));
    }
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      paths.emplace_back(found.gl_pathv[i]);
    }
  }
  return paths;
}

absl::Status ForEachTensor(const std::string& path, Wants wants, Visit visit) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return VisitFile(path, wants, visit);
  FF_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesOf(path));
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": found no .safetensors, .npy or .npz in it"));
  }
  // A sharded checkpoint is one thing; its index says what is where.
  const auto index =
      std::find_if(files.begin(), files.end(), [](const std::string& file) {
        return absl::EndsWith(file, ".safetensors.index.json");
      });
  if (index != files.end()) return VisitCheckpoint(path, wants, visit);
  for (const std::string& file : files) {
    FF_RETURN_IF_ERROR(VisitFile(file, wants, visit));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
