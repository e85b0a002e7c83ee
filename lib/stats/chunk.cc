#include "lib/stats/chunk.h"

namespace firstframe::internal {

ChunkFunction BestChunkFunction() {
  static const ChunkFunction best = [] {
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return &ComputeChunkV4;
    }
    return __builtin_cpu_supports("avx2") ? &ComputeChunkV3 : &ComputeChunkV2;
  }();
  return best;
}

}  // namespace firstframe::internal
