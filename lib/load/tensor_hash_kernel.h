// Launches the hash kernel. Internal to tensor_hash_device_cuda.cc.

#ifndef LIB_LOAD_TENSOR_HASH_KERNEL_H_
#define LIB_LOAD_TENSOR_HASH_KERNEL_H_

#include <cstddef>

#include "absl/status/status.h"
#include "lib/load/tensor_hash_device.h"

namespace firstframe {

// One block per chunk; adds each chunk's sum to sums[chunk.tensor]. All
// pointers are device memory; `stream` is a cudaStream_t.
absl::Status LaunchHashChunks(const std::byte* arena, const HashChunk* chunks,
                              int num_chunks, unsigned long long* sums,
                              void* stream);

}  // namespace firstframe

#endif  // LIB_LOAD_TENSOR_HASH_KERNEL_H_
