#include "lib/stats/stats_kernel.cuh"
#include "lib/stats/stats_kernel_types.h"

namespace firstframe::internal {

absl::Status LaunchStatsBf16(const void* data, int64_t numel,
                             const StatsRequest& request, void* scratch,
                             void* stream) {
  return Launch<Bf16>(data, numel, request, static_cast<Scratch*>(scratch),
                      static_cast<cudaStream_t>(stream));
}

}  // namespace firstframe::internal
