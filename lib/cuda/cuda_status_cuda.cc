#include "cuda_runtime_api.h"
#include "lib/cuda/cuda_status.h"

namespace firstframe::cuda {

absl::Status ToStatus(int code, absl::string_view call) {
  if (code == 0) return absl::OkStatus();
  cudaGetLastError();
  const auto error = static_cast<cudaError_t>(code);
  return StatusFromError(code, cudaGetErrorName(error),
                         cudaGetErrorString(error), call);
}

}  // namespace firstframe::cuda
