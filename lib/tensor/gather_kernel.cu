#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "lib/cuda/cuda_status.h"
#include "lib/tensor/gather_kernel.h"

namespace firstframe {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 4096;

// Index is 32 bits wide where that is enough: its divisions are much faster.
template <typename Element, typename Index>
__global__ void __launch_bounds__(kThreads)
    Gather(const Element* data, const GatherLayout layout, Element* to) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < layout.count; i += stride) {
    Index rest = static_cast<Index>(i);
    int64_t offset = 0;
    for (int d = layout.rank - 1; d >= 0; --d) {
      const Index size = static_cast<Index>(layout.shape[d]);
      const Index next = rest / size;
      offset += static_cast<int64_t>(rest - next * size) * layout.strides[d];
      rest = next;
    }
    to[i] = data[offset];
  }
}

template <typename Element>
absl::Status Launch(const void* data, const GatherLayout& layout, void* to,
                    void* stream) {
  const int blocks = static_cast<int>(
      std::min((layout.count + kThreads - 1) / kThreads, kMaxBlocks));
  const auto on = static_cast<cudaStream_t>(stream);
  const auto* const from = static_cast<const Element*>(data);
  auto* const target = static_cast<Element*>(to);
  if (layout.count <= INT32_MAX) {
    Gather<Element, uint32_t>
        <<<blocks, kThreads, 0, on>>>(from, layout, target);
  } else {
    Gather<Element, uint64_t>
        <<<blocks, kThreads, 0, on>>>(from, layout, target);
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

}  // namespace

absl::Status LaunchGather(const void* data, const GatherLayout& layout,
                          int64_t element_bytes, void* to, void* stream) {
  switch (element_bytes) {
    case 1:
      return Launch<uint8_t>(data, layout, to, stream);
    case 2:
      return Launch<uint16_t>(data, layout, to, stream);
    case 4:
      return Launch<uint32_t>(data, layout, to, stream);
    case 8:
      return Launch<uint64_t>(data, layout, to, stream);
    case 16:
      return Launch<uint4>(data, layout, to, stream);
    default:
      return absl::UnimplementedError("strided elements of " +
                                      std::to_string(element_bytes) +
                                      " bytes on a device");
  }
}

}  // namespace firstframe
