#include "lib/cuda/cuda_status.h"

namespace firstframe::cuda {

absl::Status ToStatus(int code, absl::string_view call) {
  return StatusFromError(code, "error", "built without CUDA", call);
}

}  // namespace firstframe::cuda
