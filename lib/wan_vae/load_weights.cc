#include "lib/wan_vae/load_weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "lib/base/file_reader.h"
#include "lib/base/status_macros.h"
#include "lib/load/load_source.h"
#include "lib/load/loader.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/weights.h"

namespace firstframe {
namespace {

// A config.json is a few hundred bytes.
constexpr uint64_t kMaxConfigBytes = 1 << 20;

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

absl::StatusOr<WanVaeConfig> ReadConfig(const std::string& path) {
  FF_ASSIGN_OR_RETURN(const auto reader, FileReader::Open(path));
  if (reader->size_bytes() > kMaxConfigBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", reader->size_bytes(),
        " bytes, expected a config.json of at most ", kMaxConfigBytes));
  }
  std::string text(reader->size_bytes(), '\0');
  FF_RETURN_IF_ERROR(reader->Read(
      0,
      absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size())));
  return ParseWanVaeConfig(text, path);
}

// Keeps the first error that any thread meets.
class FirstError {
 public:
  void Record(absl::Status status) {
    if (status.ok()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  absl::Status status_;
};

// What to load: the entries at `positions`, in that order.
LoadSource SourceOf(const Checkpoint& checkpoint,
                    const std::vector<int>& positions) {
  LoadSource all = MakeLoadSource(checkpoint);
  LoadSource source;
  source.paths = std::move(all.paths);
  source.tensors.reserve(positions.size());
  for (const int position : positions) {
    source.tensors.push_back(std::move(all.tensors[position]));
  }
  return source;
}

// Returns views of the loaded tensors in the order of `source`: the loader
// gives them in the order of the files.
std::vector<TensorView> ViewsInOrder(const LoadSource& source,
                                     const LoadedCheckpoint& loaded) {
  absl::flat_hash_map<absl::string_view, const LoadedTensor*> by_name;
  for (const LoadedTensor& tensor : loaded.tensors) {
    by_name.emplace(tensor.name, &tensor);
  }
  std::vector<TensorView> views;
  views.reserve(source.tensors.size());
  for (const SourceTensor& tensor : source.tensors) {
    const LoadedTensor& from = *by_name.at(tensor.name);
    views.push_back({.dtype = from.dtype,
                     .shape = from.shape,
                     .bytes = absl::MakeConstSpan(from.data, from.size_bytes)});
  }
  return views;
}

}  // namespace

absl::StatusOr<VaeComponent> FindVaeComponent(const std::string& path) {
  VaeComponent component;
  if (IsFolder(path)) {
    component.folder = path;
    const std::string nested = absl::StrCat(path, "/vae");
    if (!Exists(absl::StrCat(path, "/config.json")) && IsFolder(nested)) {
      component.folder = nested;
    }
    component.checkpoint = component.folder;
    component.config_path = absl::StrCat(component.folder, "/config.json");
    if (!Exists(component.config_path)) {
      return absl::NotFoundError(
          absl::StrCat(path, ": no config.json in it, and no vae/config.json"));
    }
  } else if (Exists(path)) {
    const size_t slash = path.rfind('/');
    component.folder = slash == std::string::npos ? "." : path.substr(0, slash);
    component.checkpoint = path;
    const std::string beside = absl::StrCat(component.folder, "/config.json");
    if (Exists(beside)) component.config_path = beside;
  } else {
    return absl::NotFoundError(absl::StrCat(
        path,
        ": no such file or folder, expected a VAE's component folder, a "
        "pipeline folder or a safetensors file"));
  }
  if (!component.config_path.empty()) {
    FF_ASSIGN_OR_RETURN(component.config, ReadConfig(component.config_path));
  }
  return component;
}

absl::StatusOr<VaeWeights> ReadVaeWeights(const std::string& checkpoint,
                                          const WanVaeConfig& config,
                                          const ModuleTree& tree) {
  FF_ASSIGN_OR_RETURN(Checkpoint opened, Checkpoint::Open(checkpoint));
  VaeWeights weights = {.checkpoint = std::move(opened),
                        .values = {},
                        .arena = {},
                        .degraded = {}};
  const auto& entries = weights.checkpoint.entries();
  std::vector<NamedTensor> tensors;
  tensors.reserve(entries.size());
  for (const CheckpointEntry& entry : entries) {
    const SafetensorsTensor& tensor = weights.checkpoint.tensor(entry);
    tensors.push_back(
        {tensor.name,
         {.dtype = tensor.dtype, .shape = tensor.shape, .bytes = {}}});
  }
  const absl::StatusOr<std::vector<int>> positions =
      MatchParameters(config, tree, tensors);
  if (!positions.ok()) return Annotate(positions.status(), checkpoint);
  const LoadSource source = SourceOf(weights.checkpoint, *positions);
  LoadOptions options;
  options.transfer.cached_threads = std::max(1, ComputeThreads());
  FF_ASSIGN_OR_RETURN(LoadedCheckpoint loaded, LoadCheckpoint(source, options));
  // No header may describe another file than the one that was loaded.
  FF_RETURN_IF_ERROR(weights.checkpoint.CheckUnchanged());
  weights.values = ViewsInOrder(source, loaded);
  weights.size_bytes = loaded.report.tensor_bytes;
  weights.degraded = std::move(loaded.report.degraded);
  weights.arena = std::move(loaded.host_arena);
  return weights;
}

absl::Status AssignVaeWeights(const VaeWeights& weights, WanVae& model) {
  // Split by bytes, not by tensor: a few hold most of the model.
  const int64_t count = static_cast<int64_t>(weights.values.size());
  std::vector<int64_t> ends(count);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    ends[i] = total += weights.values[i].bytes.size();
  }
  FirstError error;
  ParallelFor(total, 1 << 20, [&](int64_t begin, int64_t end) {
    // A tensor belongs to the thread whose range its last byte is in.
    int64_t i =
        std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
    for (; i < count && ends[i] <= end; ++i) {
      error.Record(
          model.AssignParameter(static_cast<int>(i), weights.values[i]));
    }
  });
  return error.status();
}

absl::Status LoadVaeWeights(const std::string& checkpoint, WanVae& model) {
  FF_RETURN_IF_ERROR(model.AllocateParameters());
  FF_ASSIGN_OR_RETURN(const VaeWeights weights,
                      ReadVaeWeights(checkpoint, model.config(), model.tree()));
  FF_RETURN_IF_ERROR(AssignVaeWeights(weights, model));
  return model.Finalize();
}

}  // namespace firstframe
