#include "lib/load/tensor_hash_device.h"

namespace firstframe {

absl::Status SumChunksOnDevice(const std::byte*, absl::Span<const HashChunk>,
                               absl::Span<uint64_t>, cuda::Runtime&) {
  return absl::UnimplementedError(
      "built without CUDA; rebuild with --config=cuda");
}

}  // namespace firstframe
