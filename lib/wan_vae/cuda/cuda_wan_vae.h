// A Wan VAE on an NVIDIA GPU.
//
// Kernels are this project's own, so nothing is loaded but the driver: wgmma
// (compute capability 9.0) for every convolution and matrix product, or CUDA
// cores elsewhere (8.0 and newer). Launches are planned, and memory is placed,
// before the first one (plan.h). Nothing is tuned or searched at run time, and
// so nothing kept on disk: one kernel serves a layer, which one follows from
// its channels (conv_variant.h). docs/wan_vae_gpu.md has why, beside cuDNN's
// best.

#ifndef LIB_WAN_VAE_CUDA_CUDA_WAN_VAE_H_
#define LIB_WAN_VAE_CUDA_CUDA_WAN_VAE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/module.h"
#include "lib/wan_vae/cuda/conv_arguments.h"
#include "lib/wan_vae/cuda/conv_variant.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {

// Device time of one module's launches in a run.
struct LayerTime {
  int module = -1;        // of WanVae::tree(); 0 for layout changes
  int64_t device_ns = 0;  // all its launches
  double flops = 0;
  int launches = 0;
};

struct CudaWanVaeOptions {
  int device = 0;
  cuda::MathMode math = cuda::MathMode::kFp32;
  // Unset: the fastest that the device has, but CUDA cores for models of fewer
  // than eight channels.
  std::optional<cuda::ConvKernelKind> kernels;
};

// A WanVae that says what its last run took. ParameterBytes and WorkspaceBytes
// are device memory.
class CudaWanVae : public WanVae {
 public:
  // Device time from the first launch to the last of the last tile run, and the
  // floating-point operations of its convolutions and matrix products.
  virtual int64_t LastRunDeviceNs() const = 0;
  virtual double LastRunFlops() const = 0;

  // The most device memory that a decode of `latent` [batch, channels, frames,
  // height, width] needs beside the parameters: known before it runs.
  virtual int64_t PlannedDecodeBytes(const Shape& latent) const = 0;

  // While on, runs are timed launch by launch, which adds some microseconds to
  // each. LastLayerTimes is then of the last tile run, in the order of modules'
  // first launches.
  virtual void TimeLayers(bool on) = 0;
  virtual const std::vector<LayerTime>& LastLayerTimes() const = 0;

  // The decoder's parameters as a module that an offload may move
  // (lib/offload/frozen_store.h): one tensor, "decoder", of the layers as
  // kernels want them. Lives as long as this object, and owns the memory from
  // the first call on. A decode while the tensor is on the host is
  // FailedPrecondition, as is this call before Finalize.
  virtual absl::StatusOr<OffloadModule*> OffloadableDecoder() = 0;
  // The stream that decodes run on, for ordering moves against them.
  virtual cuda::StreamHandle stream() const = 0;

  // The most device memory that this object has held at once.
  virtual int64_t PeakDeviceBytes() const = 0;

 protected:
  using WanVae::WanVae;
};

// Constructs the graph. `config` must be valid. Makes `device` current on the
// calling thread; later calls must come from threads where it is. Unavailable
// without a driver or a GPU that is new enough, Unimplemented in a build
// without CUDA.
absl::StatusOr<std::unique_ptr<CudaWanVae>> BuildCudaWanVae(
    const WanVaeConfig& config, const CudaWanVaeOptions& options);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CUDA_CUDA_WAN_VAE_H_
