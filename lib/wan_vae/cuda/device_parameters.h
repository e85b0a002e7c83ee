// The parameters of a model on the device: as uploaded, and as kernels want
// them.

#ifndef LIB_WAN_VAE_CUDA_DEVICE_PARAMETERS_H_
#define LIB_WAN_VAE_CUDA_DEVICE_PARAMETERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/cuda/pinned_uploader.h"
#include "lib/wan_vae/cuda/plan.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe::cuda {

// Thread-compatible, but for Assign, which any thread may call; it makes
// `device` that thread's current one.
class DeviceParameters {
 public:
  DeviceParameters(const ModuleTree& tree, const PlanOptions& options,
                   int device);
  // Waits for copies out of memory that it gives up.
  ~DeviceParameters();

  absl::Status Allocate();
  absl::Status Assign(int index, const TensorView& value);

  // WanVae::TakeParameters: float32 of the decoder goes to the device straight
  // from its block, which is pinned for that; what is the encoder's stays where
  // it is until Prepare. A block that cannot be pinned is left alone.
  absl::StatusOr<std::vector<bool>> Take(
      absl::Span<const TensorView> values,
      absl::Span<const WanVae::HostBlock> blocks);

  // Packs the decoder's (or encoder's) layers on `stream` and frees the
  // uploaded form, and host memory that was taken. The encoder's parameters
  // wait in host memory until then: most processes only decode.
  // FailedPrecondition names a parameter without a value.
  absl::Status Prepare(bool encoder, const Stream& stream);
  bool is_prepared(bool encoder) const { return sides_[encoder].is_prepared; }

  struct Layer {
    ConvVariant variant;
    const void* weights = nullptr;
    const float* bias = nullptr;
  };
  // Of prepared layers. Gammas are padded with zeros to whole tiles.
  const Layer& LayerOf(const ConvLayer& layer) const {
    return layers_[layer.module];
  }
  const float* GammaOf(const NormLayer& norm) const {
    return gammas_[norm.gamma];
  }

  // Gives up the packed layers of a prepared side, for whoever moves them
  // between host and device. Rebase says where they are then.
  struct PackedBlock {
    std::byte* data = nullptr;  // device memory
    int64_t size_bytes = 0;
    std::shared_ptr<const void> memory;  // keeps it
  };
  PackedBlock TakePacked(bool encoder);
  // Points the layers at `data`, device memory that holds the packed block.
  void Rebase(bool encoder, std::byte* data);

  int64_t bytes() const;
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Side {
    DeviceBuffer raw;
    std::shared_ptr<DeviceBuffer> packed;  // null once it was taken
    std::byte* packed_data = nullptr;      // where the layers point
    int64_t packed_bytes = 0;
    int64_t raw_bytes = 0;
    bool is_prepared = false;
  };
  struct Placed {
    int side = 0;
    int64_t offset = 0;  // in Side::raw
  };
  // A block that was taken, for as long as copies or the encoder need it.
  struct Kept {
    std::shared_ptr<const void> owner;
    HostRegistration registration;  // ends before the owner does
    bool has_encoder = false;
  };
  const float* Raw(int parameter) const;
  bool Fits(int index, const TensorView& value) const {
    return value.shape == tree_.parameters[index].shape;
  }
  absl::StatusOr<PinnedUploader*> Uploader();
  absl::Status AssignToEncoder(int index, const TensorView& value);
  absl::Status TakeBlock(absl::Span<const TensorView> values,
                         const WanVae::HostBlock& block,
                         std::vector<bool>& taken);
  absl::Status UploadEncoder();
  void ReleaseHostMemory(bool encoder);

  const ModuleTree& tree_;
  const PlanOptions options_;
  const int device_;
  Side sides_[2];  // decoder, encoder
  std::vector<Placed> places_;
  std::vector<char> is_assigned_;  // char: written from several threads
  std::vector<Layer> layers_;      // by module
  std::vector<const float*> gammas_;
  std::optional<Stream> copies_;  // of what was taken
  std::vector<Kept> kept_;
  std::thread releaser_;  // of what was kept
  // The encoder's values, by parameter, until they are uploaded, and the memory
  // of those that were assigned.
  std::vector<TensorView> encoder_values_;
  std::unique_ptr<float[]> encoder_memory_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PinnedUploader> uploader_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex mutex_;
  int64_t peak_bytes_ = 0;
};

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_DEVICE_PARAMETERS_H_
