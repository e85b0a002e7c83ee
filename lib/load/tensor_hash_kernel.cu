#include <cuda_runtime.h>

#include "lib/cuda/cuda_status.h"
#include "lib/load/tensor_hash_kernel.h"

namespace firstframe {
namespace {

constexpr int kThreads = 256;

__device__ unsigned long long Mix(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

__global__ void HashChunks(const unsigned char* arena, const HashChunk* chunks,
                           unsigned long long* sums) {
  constexpr unsigned long long kGolden = 0x9E3779B97F4A7C15ull;
  const HashChunk chunk = chunks[blockIdx.x];
  const unsigned char* bytes = arena + chunk.arena_offset;
  // Tensors begin at multiples of 256 bytes, so words are aligned.
  const unsigned long long* words =
      reinterpret_cast<const unsigned long long*>(bytes);
  const unsigned long long count = chunk.size_bytes / 8;
  const unsigned long long first = chunk.tensor_offset / 8 + 1;
  unsigned long long sum = 0;
  for (unsigned long long i = threadIdx.x; i < count; i += kThreads) {
    sum += Mix(words[i] + (first + i) * kGolden);
  }
  const unsigned rest = static_cast<unsigned>(chunk.size_bytes % 8);
  if (threadIdx.x == 0 && rest > 0) {
    unsigned long long word = 0;
    for (unsigned i = 0; i < rest; ++i) {
      word |= static_cast<unsigned long long>(bytes[count * 8 + i]) << (8 * i);
    }
    sum += Mix(word + (first + count) * kGolden);
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, step);
  }
  if (threadIdx.x % 32 == 0) atomicAdd(&sums[chunk.tensor], sum);
}

}  // namespace

absl::Status LaunchHashChunks(const std::byte* arena, const HashChunk* chunks,
                              int num_chunks, unsigned long long* sums,
                              void* stream) {
  HashChunks<<<num_chunks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const unsigned char*>(arena), chunks, sums);
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

}  // namespace firstframe
