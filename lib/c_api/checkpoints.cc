// ff_load*, ff_checkpoint_*: lib/load, and its arena as DLPack tensors.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/dlpack_abi.h"
#include "lib/c_api/tensor.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/load/load_source.h"
#include "lib/load/loader.h"
#include "lib/load/staging.h"
#include "lib/safetensors/checkpoint.h"

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;

struct ff_checkpoint {
  // Shared with the DLPack tensors that were given away. Without arenas when
  // the memory is the caller's.
  std::shared_ptr<const firstframe::LoadedCheckpoint> loaded;
  int32_t device = FF_HOST;
};

namespace {

using firstframe::DType;
using firstframe::LoadedTensor;

// Types that both DLPack 0.x and torch.from_dlpack know.
std::optional<DLDataType> DLPackType(DType dtype) {
  const auto bits = static_cast<uint8_t>(firstframe::DTypeBits(dtype));
  switch (dtype) {
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      return DLDataType{0, bits, 1};
    case DType::kU8:
    case DType::kU16:
    case DType::kU32:
    case DType::kU64:
      return DLDataType{1, bits, 1};
    case DType::kF16:
    case DType::kF32:
    case DType::kF64:
      return DLDataType{2, bits, 1};
    case DType::kBF16:
      return DLDataType{4, bits, 1};
    case DType::kC64:
      return DLDataType{5, bits, 1};
    case DType::kBool:
      return DLDataType{6, bits, 1};
    default:
      return std::nullopt;
  }
}

// A DLManagedTensor with what it points to and what keeps that alive.
struct SharedTensor {
  DLManagedTensor managed = {};
  std::vector<int64_t> shape;
  std::shared_ptr<const firstframe::LoadedCheckpoint> owner;
};

DLManagedTensor* Share(const ff_checkpoint& checkpoint,
                       const LoadedTensor& tensor) {
  auto shared = std::make_unique<SharedTensor>();
  shared->owner = checkpoint.loaded;
  const std::optional<DLDataType> type = DLPackType(tensor.dtype);
  if (type.has_value()) {
    shared->shape.assign(tensor.shape.begin(), tensor.shape.end());
  } else {
    shared->shape = {static_cast<int64_t>(tensor.size_bytes)};
  }
  DLTensor& to = shared->managed.dl_tensor;
  to.data = tensor.data;
  to.device = checkpoint.device == FF_HOST ? DLDevice{1, 0}
                                           : DLDevice{2, checkpoint.device};
  to.ndim = static_cast<int32_t>(shared->shape.size());
  to.dtype = type.value_or(DLDataType{1, 8, 1});
  to.shape = shared->shape.data();
  shared->managed.manager_ctx = shared.get();
  shared->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<SharedTensor*>(self->manager_ctx);
  };
  return &shared.release()->managed;
}

absl::StatusOr<firstframe::LoadSource> OpenSource(const char* path) {
  FF_RETURN_IF_ERROR(NotNull(path, "path"));
  FF_ASSIGN_OR_RETURN(const firstframe::Checkpoint checkpoint,
                      firstframe::Checkpoint::Open(path));
  return firstframe::MakeLoadSource(checkpoint);
}

absl::StatusOr<firstframe::LoadOptions> OptionsFor(int32_t device) {
  firstframe::LoadOptions options;
  if (device == FF_HOST) return options;
  firstframe::cuda::Runtime& runtime = firstframe::cuda::GetRuntime();
  FF_ASSIGN_OR_RETURN(const int count, runtime.DeviceCount());
  if (device < 0 || device >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("device is ", device, ", expected FF_HOST or one of ",
                     count, " CUDA devices"));
  }
  options.runtime = &runtime;
  options.device = device;
  return options;
}

// The pinned ring of the last load to a device: pinning takes longer than many
// a load. Leaked, so that nothing of CUDA's runs at exit.
class SpareRing {
 public:
  static SpareRing& Get() {
    static SpareRing* const spare = new SpareRing;
    return *spare;
  }

  firstframe::StagingRing Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(ring_, firstframe::StagingRing());
  }
  void GiveBack(firstframe::StagingRing ring) {
    absl::MutexLock lock(&mutex_);
    if (ring.size_bytes() > ring_.size_bytes()) ring_ = std::move(ring);
  }

 private:
  absl::Mutex mutex_;
  firstframe::StagingRing ring_ ABSL_GUARDED_BY(mutex_);
};

// Fills `loaded` from `arena`, which `choose_arena` gives for a size.
absl::StatusOr<firstframe::LoadedCheckpoint> Load(
    const char* path, int32_t device,
    absl::FunctionRef<absl::StatusOr<std::byte*>(uint64_t,
                                                 firstframe::LoadedCheckpoint&)>
        choose_arena) {
  FF_ASSIGN_OR_RETURN(const firstframe::LoadSource source, OpenSource(path));
  FF_ASSIGN_OR_RETURN(const firstframe::LoadOptions options,
                      OptionsFor(device));
  std::optional<firstframe::c_api::DeviceScope> scope;
  if (device != FF_HOST) {
    FF_ASSIGN_OR_RETURN(auto entered,
                        firstframe::c_api::DeviceScope::Enter(device));
    scope.emplace(std::move(entered));
  }
  FF_ASSIGN_OR_RETURN(firstframe::CheckpointLoader loader,
                      firstframe::CheckpointLoader::Create(source, options));
  firstframe::LoadedCheckpoint loaded;
  FF_ASSIGN_OR_RETURN(std::byte* const arena,
                      choose_arena(loader.plan().arena_bytes, loaded));
  if (device != FF_HOST) loader.AdoptRing(SpareRing::Get().Take());
  absl::StatusOr<firstframe::LoadReport> report = loader.LoadAll(arena);
  if (device != FF_HOST) SpareRing::Get().GiveBack(loader.TakeRing());
  FF_ASSIGN_OR_RETURN(loaded.report, std::move(report));
  loaded.tensors = firstframe::TensorsIn(loader.plan(), arena);
  return loaded;
}

absl::StatusOr<firstframe::LoadedCheckpoint> LoadOwned(const char* path,
                                                       int32_t device) {
  return Load(
      path, device,
      [&](uint64_t size,
          firstframe::LoadedCheckpoint& loaded) -> absl::StatusOr<std::byte*> {
        if (device == FF_HOST) {
          FF_ASSIGN_OR_RETURN(loaded.host_arena,
                              firstframe::HostArena::Allocate(size));
          return loaded.host_arena.data();
        }
        FF_ASSIGN_OR_RETURN(loaded.device_arena,
                            firstframe::cuda::DeviceBuffer::Allocate(size));
        return loaded.device_arena.data();
      });
}

absl::StatusOr<firstframe::LoadedCheckpoint> LoadInto(const char* path,
                                                      int32_t device,
                                                      void* arena,
                                                      uint64_t size_bytes) {
  return Load(
      path, device,
      [&](uint64_t size,
          firstframe::LoadedCheckpoint&) -> absl::StatusOr<std::byte*> {
        if (size_bytes < size) {
          return absl::InvalidArgumentError(
              absl::StrCat(path, ": the arena has ", size_bytes,
                           " bytes, expected at least ", size));
        }
        if (size > 0) FF_RETURN_IF_ERROR(NotNull(arena, "arena"));
        if (reinterpret_cast<uintptr_t>(arena) % firstframe::kTensorAlignment !=
            0) {
          return absl::InvalidArgumentError(
              "the arena is not aligned to 256 bytes");
        }
        return static_cast<std::byte*>(arena);
      });
}

ff_checkpoint* Wrap(firstframe::LoadedCheckpoint loaded, int32_t device) {
  return new ff_checkpoint{
      std::make_shared<const firstframe::LoadedCheckpoint>(std::move(loaded)),
      device};
}

absl::StatusOr<const LoadedTensor*> TensorAt(const ff_checkpoint* checkpoint,
                                             size_t index) {
  FF_RETURN_IF_ERROR(NotNull(checkpoint, "checkpoint"));
  const auto& tensors = checkpoint->loaded->tensors;
  if (index >= tensors.size()) {
    return absl::OutOfRangeError(
        absl::StrCat("tensor ", index, " of a checkpoint of ", tensors.size()));
  }
  return &tensors[index];
}

}  // namespace

extern "C" {

ff_status ff_load(const char* path, int32_t device,
                  ff_checkpoint** checkpoint) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(checkpoint, "checkpoint"));
    FF_ASSIGN_OR_RETURN(firstframe::LoadedCheckpoint loaded,
                        LoadOwned(path, device));
    *checkpoint = Wrap(std::move(loaded), device);
    return absl::OkStatus();
  });
}

ff_status ff_load_size(const char* path, uint64_t* size_bytes) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(size_bytes, "size_bytes"));
    FF_ASSIGN_OR_RETURN(firstframe::LoadSource source, OpenSource(path));
    FF_ASSIGN_OR_RETURN(const firstframe::LoadPlan plan,
                        firstframe::MakeLoadPlan(std::move(source)));
    *size_bytes = plan.arena_bytes;
    return absl::OkStatus();
  });
}

ff_status ff_load_into(const char* path, int32_t device, void* arena,
                       uint64_t size_bytes, ff_checkpoint** checkpoint) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(checkpoint, "checkpoint"));
    FF_ASSIGN_OR_RETURN(firstframe::LoadedCheckpoint loaded,
                        LoadInto(path, device, arena, size_bytes));
    *checkpoint = Wrap(std::move(loaded), device);
    return absl::OkStatus();
  });
}

size_t ff_checkpoint_size(const ff_checkpoint* checkpoint) {
  return checkpoint == nullptr ? 0 : checkpoint->loaded->tensors.size();
}

ff_status ff_checkpoint_tensor(const ff_checkpoint* checkpoint, size_t index,
                               ff_tensor_info* info) {
  return Guard([&]() -> absl::Status {
    FF_ASSIGN_OR_RETURN(const LoadedTensor* tensor,
                        TensorAt(checkpoint, index));
    ff_tensor_info result;
    FF_RETURN_IF_ERROR(firstframe::c_api::ReadStruct(info, "info", result));
    result.name = tensor->name.c_str();
    result.shape = tensor->shape.data();
    result.data = tensor->data;
    result.dtype = static_cast<int32_t>(tensor->dtype);
    result.ndim = static_cast<int32_t>(tensor->shape.size());
    result.size_bytes = tensor->size_bytes;
    result.device = checkpoint->device;
    *info = result;
    return absl::OkStatus();
  });
}

ff_status ff_checkpoint_dlpack(const ff_checkpoint* checkpoint, size_t index,
                               DLManagedTensor** tensor) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(tensor, "tensor"));
    FF_ASSIGN_OR_RETURN(const LoadedTensor* found, TensorAt(checkpoint, index));
    *tensor = Share(*checkpoint, *found);
    return absl::OkStatus();
  });
}

void ff_dlpack_delete(DLManagedTensor* tensor) {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

ff_status ff_checkpoint_json(const ff_checkpoint* checkpoint, char** json) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(checkpoint, "checkpoint"));
    FF_RETURN_IF_ERROR(NotNull(json, "json"));
    const firstframe::LoadReport& report = checkpoint->loaded->report;
    std::string text;
    firstframe::JsonWriter writer(&text);
    writer.BeginObject();
    writer.Key("tensors").Uint(checkpoint->loaded->tensors.size());
    writer.Key("tensor_bytes").Uint(report.tensor_bytes);
    writer.Key("ring_bytes").Uint(report.ring_bytes);
    writer.Key("ring_is_pinned").Bool(report.ring_is_pinned);
    writer.Key("degraded").BeginArray();
    for (const std::string& reason : report.degraded) writer.String(reason);
    writer.EndArray();
    writer.EndObject();
    *json = firstframe::c_api::CopyText(text);
    return absl::OkStatus();
  });
}

void ff_checkpoint_release(ff_checkpoint* checkpoint) { delete checkpoint; }

}  // extern "C"
