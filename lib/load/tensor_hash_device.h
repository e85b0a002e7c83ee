// The kernel behind HashDeviceArena. Internal to tensor_hash.cc.

#ifndef LIB_LOAD_TENSOR_HASH_DEVICE_H_
#define LIB_LOAD_TENSOR_HASH_DEVICE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/cuda/runtime.h"

namespace firstframe {

// A part of one tensor, for one thread block.
struct HashChunk {
  uint64_t arena_offset = 0;   // a multiple of 8
  uint64_t tensor_offset = 0;  // a multiple of 8
  uint64_t size_bytes = 0;
  uint32_t tensor = 0;  // index into the sums
};

// Sets sums[t] to the sum of HashTensorPart over the chunks of tensor t.
// `arena` is memory of the current device. Unimplemented without CUDA.
absl::Status SumChunksOnDevice(const std::byte* arena,
                               absl::Span<const HashChunk> chunks,
                               absl::Span<uint64_t> sums,
                               cuda::Runtime& runtime);

}  // namespace firstframe

#endif  // LIB_LOAD_TENSOR_HASH_DEVICE_H_
