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

// Loads the encoder's parameters, or the others: sets those of `values`, and
// returns the memory they lie in.
absl::StatusOr<std::shared_ptr<const HostArena>> ReadPart(
    const ModuleTree& tree, bool encoder, const std::vector<int>& positions,
    const LoadOptions& options, VaeWeights& weights) {
  const LoadSource all = MakeLoadSource(weights.checkpoint);
  LoadSource part;
  part.paths = all.paths;
  absl::flat_hash_map<absl::string_view, size_t> parameter_of;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (IsEncoderParameter(tree.parameters[i]) != encoder) continue;
    const SourceTensor& tensor = all.tensors[positions[i]];
    parameter_of.emplace(tensor.name, i);
    part.tensors.push_back(tensor);
  }
  FF_ASSIGN_OR_RETURN(LoadedCheckpoint loaded, LoadCheckpoint(part, options));
  for (const LoadedTensor& tensor : loaded.tensors) {
    weights.values[parameter_of.at(tensor.name)] = {
        .dtype = tensor.dtype,
        .shape = tensor.shape,
        .bytes = absl::MakeConstSpan(tensor.data, tensor.size_bytes)};
  }
  weights.size_bytes += loaded.report.tensor_bytes;
  for (std::string& note : loaded.report.degraded) {
    weights.degraded.push_back(std::move(note));
  }
  return std::make_shared<const HostArena>(std::move(loaded.host_arena));
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
                                          const ModuleTree& tree,
                                          const ReadVaeOptions& options) {
  FF_ASSIGN_OR_RETURN(Checkpoint opened, Checkpoint::Open(checkpoint));
  VaeWeights weights = {.checkpoint = std::move(opened),
                        .values = {},
                        .decoder_arena = {},
                        .encoder_arena = {},
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
  LoadOptions load;
  load.transfer.cached_threads =
      options.threads > 0 ? options.threads : std::max(1, ComputeThreads());
  load.is_cancelled = options.is_cancelled;
  weights.values.resize(tree.parameters.size());
  FF_ASSIGN_OR_RETURN(weights.decoder_arena,
                      ReadPart(tree, false, *positions, load, weights));
  FF_ASSIGN_OR_RETURN(weights.encoder_arena,
                      ReadPart(tree, true, *positions, load, weights));
  // No header may describe another file than the one that was loaded.
  FF_RETURN_IF_ERROR(weights.checkpoint.CheckUnchanged());
  return weights;
}

absl::Status AssignVaeWeights(const VaeWeights& weights, WanVae& model) {
  std::vector<WanVae::HostBlock> blocks;
  for (const auto& arena : {weights.decoder_arena, weights.encoder_arena}) {
    blocks.push_back(
        {absl::MakeConstSpan(arena->data(), arena->size_bytes()), arena});
  }
  FF_ASSIGN_OR_RETURN(const std::vector<bool> taken,
                      model.TakeParameters(weights.values, blocks));
  // Split by bytes, not by tensor: a few hold most of the model.
  const int64_t count = static_cast<int64_t>(weights.values.size());
  std::vector<int64_t> ends(count);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    ends[i] = total += taken[i] ? 0 : weights.values[i].bytes.size();
  }
  FirstError error;
  ParallelFor(total, 1 << 20, [&](int64_t begin, int64_t end) {
    // A tensor belongs to the thread whose range its last byte is in.
    int64_t i =
        std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
    for (; i < count && ends[i] <= end; ++i) {
      if (taken[i]) continue;
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
