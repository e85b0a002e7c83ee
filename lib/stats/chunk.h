// The inner loop of the CPU statistics: one chunk of elements into sums.
//
// Compiled once per instruction set from chunk_kernel.cc; the additions happen
// in the same order in each, without fused multiply-adds, so the bits agree.

#ifndef LIB_STATS_CHUNK_H_
#define LIB_STATS_CHUNK_H_

#include <cstddef>
#include <cstdint>

#include "lib/stats/tensor_stats.h"

namespace firstframe::internal {

// A multiple of a tile's 512 elements; small enough that a float32 sum of one
// sketch lane (64 terms) stays within 1e-6 of exact.
inline constexpr int64_t kChunkElements = 32768;
// Elements converted to float32 at a time: 8 KiB, which stays in the L1 cache.
inline constexpr int64_t kBlockElements = 2048;

enum class Source {
  kFloats,  // `data` is float32 (any alignment)
  kBF16,
  kF16,
};

struct ChunkInput {
  const void* data = nullptr;
  Source source = Source::kFloats;
  int64_t count = 0;         // at most kChunkElements
  uint64_t first_index = 0;  // row-major, a multiple of 8
  StatsRequest request;
};

// Adds the chunk to `*stats`, which must be empty (numel 0). `hashes` covers
// the float32 bits of each element, with NaN in its canonical form.
using ChunkFunction = void (*)(const ChunkInput& input, TensorStats* stats);

void ComputeChunkV2(const ChunkInput& input, TensorStats* stats);  // SSE2
void ComputeChunkV3(const ChunkInput& input, TensorStats* stats);  // AVX2
void ComputeChunkV4(const ChunkInput& input, TensorStats* stats);  // AVX-512

// Returns the widest that this processor runs.
ChunkFunction BestChunkFunction();

}  // namespace firstframe::internal

#endif  // LIB_STATS_CHUNK_H_
