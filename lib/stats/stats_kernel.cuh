// The statistics kernel, to be instantiated per element type. Internal to
// lib/stats.

#ifndef LIB_STATS_STATS_KERNEL_CUH_
#define LIB_STATS_STATS_KERNEL_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "absl/status/status.h"
#include "lib/cuda/cuda_status.h"
#include "lib/stats/mix.h"
#include "lib/stats/stats_kernel.h"
#include "lib/stats/stats_reduce.cuh"
#include "lib/stats/stats_thread.cuh"

namespace firstframe::internal {

// Each warp takes whole tiles; lane l holds buckets l and l + 32, and reads
// whichever group of the tile the rotation sends there. A warp's reads still
// cover the tile without gaps.
template <typename Type, bool kHash, bool kSketch, bool kExponents>
__global__ void __launch_bounds__(kThreads, 4)
    StatsKernel(const typename Type::Raw* __restrict__ data, int64_t numel,
                bool is_aligned, Scratch* scratch) {
  using Vector = typename Type::Vector;
  constexpr int kVectors = Type::kVectors;
  constexpr int kPerVector = kGroupSize / kVectors;
  __shared__ SharedSums shared;
  shared.exponents[threadIdx.x] = 0;
  __syncthreads();

  ThreadSums t;
  const int lane = threadIdx.x % 32;
  const int64_t warp =
      static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kWarps;
  const int64_t whole_tiles = is_aligned ? numel / kTileElements : 0;
  const int64_t tiles = (numel + kTileElements - 1) / kTileElements;
  for (int64_t tile = warp; tile < tiles; tile += stride) {
    const uint32_t rotation = kSketch ? TileRotation(tile) : 0;
    const uint64_t first = static_cast<uint64_t>(tile) * kTileGroups;
    if (tile < whole_tiles) {
      Vector v[2][kVectors];
#pragma unroll
      for (int slot = 0; slot < 2; ++slot) {
        const uint64_t group = first + ((lane + 32 * slot) ^ rotation);
        const Vector* from =
            reinterpret_cast<const Vector*>(data + group * kGroupSize);
#pragma unroll
        for (int i = 0; i < kVectors; ++i) v[slot][i] = from[i];
      }
#pragma unroll
      for (int slot = 0; slot < 2; ++slot) {
        const uint64_t group = first + ((lane + 32 * slot) ^ rotation);
        AddGroup<Type, kHash, kSketch, kExponents>(v[slot], kGroupSize, group,
                                                   slot, &t, shared.exponents);
      }
      continue;
    }
    for (int slot = 0; slot < 2; ++slot) {
      const uint64_t group = first + ((lane + 32 * slot) ^ rotation);
      const int64_t begin = static_cast<int64_t>(group) * kGroupSize;
      const int64_t left = numel - begin;
      if (left <= 0) continue;
      const int count = left < kGroupSize ? static_cast<int>(left) : kGroupSize;
      Vector v[kVectors];
      typename Type::Raw* const raw = reinterpret_cast<typename Type::Raw*>(v);
      for (int e = 0; e < kPerVector * kVectors; ++e) {
        raw[e] = e < count ? data[begin + e] : typename Type::Raw{};
      }
      AddGroup<Type, kHash, kSketch, kExponents>(v, count, group, slot, &t,
                                                 shared.exponents);
    }
  }
  __syncthreads();
  ReduceBlock<kSketch, kExponents>(t, &shared, &scratch->parts[blockIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = atomicAdd(&scratch->finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!shared.is_last) return;
  __threadfence();
  ReduceParts<Type, kSketch, kExponents>(data, numel, gridDim.x, &shared,
                                         scratch);
}

template <typename Type, bool kHash, bool kSketch, bool kExponents>
absl::Status Start(const void* data, int64_t numel, Scratch* scratch,
                   cudaStream_t stream) {
  const auto* const typed = static_cast<const typename Type::Raw*>(data);
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(data) % sizeof(typename Type::Vector) == 0;
  const int64_t tiles = (numel + kTileElements - 1) / kTileElements;
  const int64_t wanted = (tiles + kWarps - 1) / kWarps;
  const int blocks =
      static_cast<int>(wanted < 1 ? 1 : (wanted < kBlocks ? wanted : kBlocks));
  StatsKernel<Type, kHash, kSketch, kExponents>
      <<<blocks, kThreads, 0, stream>>>(typed, numel, is_aligned, scratch);
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

// Activations: a kernel for each of the requests that matter.
template <typename Type>
absl::Status Launch(const void* data, int64_t numel,
                    const StatsRequest& request, Scratch* s,
                    cudaStream_t stream) {
  if (request.exponents) {
    return Start<Type, true, true, true>(data, numel, s, stream);
  }
  if (request.hashes && request.sketch) {
    return Start<Type, true, true, false>(data, numel, s, stream);
  }
  if (request.hashes) {
    return Start<Type, true, false, false>(data, numel, s, stream);
  }
  if (request.sketch) {
    return Start<Type, false, true, false>(data, numel, s, stream);
  }
  return Start<Type, false, false, false>(data, numel, s, stream);
}

// Other types are rare and small: one kernel that computes everything.
template <typename Type>
absl::Status LaunchAll(const void* data, int64_t numel, Scratch* s,
                       cudaStream_t stream) {
  return Start<Type, true, true, true>(data, numel, s, stream);
}

}  // namespace firstframe::internal

#endif  // LIB_STATS_STATS_KERNEL_CUH_
