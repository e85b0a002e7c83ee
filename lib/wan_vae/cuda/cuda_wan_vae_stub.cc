#include "absl/status/status.h"
#include "lib/wan_vae/cuda/cuda_wan_vae.h"

namespace firstframe {

absl::StatusOr<std::unique_ptr<CudaWanVae>> BuildCudaWanVae(
    const WanVaeConfig& /*config*/, const CudaWanVaeOptions& /*options*/) {
  return absl::UnimplementedError(
      "built without CUDA: install the CUDA toolkit (nvcc), or point CUDA_PATH "
      "at it, and rebuild with --config=cuda");
}

}  // namespace firstframe
