#include "lib/wan_vae/load_weights.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/file_reader.h"
#include "lib/base/status_macros.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/weights.h"

namespace firstframe {
namespace {

// A config.json is a few hundred bytes.
constexpr uint64_t kMaxConfigBytes = 1 << 20;

// Bytes that one thread reads at a time.
constexpr uint64_t kReadPart = 4 << 20;

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

struct ReadPart {
  uint32_t file;
  uint64_t offset;
  absl::Span<std::byte> target;
};

// Parts are contiguous pieces of up to kReadPart bytes; `num_bytes` is all of
// them.
absl::Status ReadParts(const CheckpointReader& reader,
                       const std::vector<ReadPart>& parts, uint64_t num_bytes) {
  FirstError error;
  const int64_t count = static_cast<int64_t>(parts.size());
  // A small model is read before other threads wake up.
  const int64_t grain = num_bytes < kReadPart ? count : 1;
  ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      error.Record(
          reader.file(parts[i].file).Read(parts[i].offset, parts[i].target));
    }
  });
  return error.status();
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
  VaeWeights weights = {.checkpoint = std::move(opened), .values = {}};
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
  FF_ASSIGN_OR_RETURN(const CheckpointReader reader,
                      CheckpointReader::Open(weights.checkpoint));
  std::vector<ReadPart> parts;
  for (const int position : *positions) {
    const TensorView& view = tensors[position].view;
    FF_ASSIGN_OR_RETURN(
        HostTensor value,
        HostTensor::Create(view.dtype, view.shape, HostTensor::Fill::kNone));
    const uint64_t start = weights.checkpoint.file_offset(entries[position]);
    const uint64_t size = value.size_bytes();
    for (uint64_t at = 0; at < size; at += kReadPart) {
      parts.push_back({entries[position].file, start + at,
                       value.mutable_bytes().subspan(at, kReadPart)});
    }
    weights.size_bytes += size;
    weights.values.push_back(std::move(value));
  }
  FF_RETURN_IF_ERROR(ReadParts(reader, parts, weights.size_bytes));
  return weights;
}

absl::Status AssignVaeWeights(const VaeWeights& weights, WanVae& model) {
  // Split by bytes, not by tensor: a few hold most of the model.
  const int64_t count = static_cast<int64_t>(weights.values.size());
  std::vector<int64_t> ends(count);
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    ends[i] = total += weights.values[i].size_bytes();
  }
  FirstError error;
  ParallelFor(total, 1 << 20, [&](int64_t begin, int64_t end) {
    // A tensor belongs to the thread whose range its last byte is in.
    int64_t i =
        std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin();
    for (; i < count && ends[i] <= end; ++i) {
      error.Record(
          model.AssignParameter(static_cast<int>(i), weights.values[i].view()));
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
