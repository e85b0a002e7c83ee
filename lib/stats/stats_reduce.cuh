// From threads to warps, blocks and the whole, always in the same order.
// Internal to lib/stats.

#ifndef LIB_STATS_STATS_REDUCE_CUH_
#define LIB_STATS_STATS_REDUCE_CUH_

#include <cstdint>

#include "lib/stats/mix.h"
#include "lib/stats/stats_kernel.h"
#include "lib/stats/stats_thread.cuh"

namespace firstframe::internal {

// Four blocks for each of an H200's 132 multiprocessors. Fixed, so that sums
// are added in the same order on every device.
inline constexpr int kBlocks = 528;
inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / 32;
inline constexpr int kTileElements = kGroupSize * kTileGroups;

// The scratch memory.
struct Scratch {
  DeviceSums result;
  unsigned int finished;
  DeviceSums parts[kBlocks];
};

struct SharedSums {
  double sketch[kWarps][kSketchSize];
  DeviceSums warps[kWarps];
  unsigned int exponents[kNumExponents];
  bool is_last;
};

template <typename T>
__device__ inline T WarpSum(T value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  }
  return value;
}

__device__ inline void TakeLarger(float amax, long long index, float* best,
                                  long long* best_index) {
  const bool is_first_of_equals =
      amax == *best && index >= 0 && (*best_index < 0 || index < *best_index);
  if (amax > *best || is_first_of_equals) {
    *best = amax;
    *best_index = index;
  }
}

// Sums of the lanes; every lane gets them.
__device__ inline void ReduceWarp(const ThreadSums& t, DeviceSums* out) {
  DeviceSums s;
  s.sum = WarpSum(t.sum);
  s.abs_sum = WarpSum(t.abs_sum);
  s.squares = WarpSum(t.squares);
  s.nan = WarpSum(static_cast<unsigned long long>(t.nan));
  s.inf_pos = WarpSum(static_cast<unsigned long long>(t.inf_pos));
  s.inf_neg = WarpSum(static_cast<unsigned long long>(t.inf_neg));
  s.zero = WarpSum(t.zero);
  s.h_set = WarpSum(static_cast<unsigned long long>(t.h_set));
  s.h_pos = WarpSum(static_cast<unsigned long long>(t.h_pos));
  s.min = t.min;
  s.max = t.max;
  s.amax = t.amax;
  s.amax_index = t.amax_index;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    s.min = fminf(s.min, __shfl_xor_sync(0xFFFFFFFFu, s.min, offset));
    s.max = fmaxf(s.max, __shfl_xor_sync(0xFFFFFFFFu, s.max, offset));
    const float amax = __shfl_xor_sync(0xFFFFFFFFu, s.amax, offset);
    const long long index = __shfl_xor_sync(0xFFFFFFFFu, s.amax_index, offset);
    TakeLarger(amax, index, &s.amax, &s.amax_index);
  }
  if (threadIdx.x % 32 == 0) {
    out->sum = s.sum, out->abs_sum = s.abs_sum, out->squares = s.squares;
    out->nan = s.nan, out->inf_pos = s.inf_pos, out->inf_neg = s.inf_neg;
    out->zero = s.zero, out->h_set = s.h_set, out->h_pos = s.h_pos;
    out->min = s.min, out->max = s.max;
    out->amax = s.amax, out->amax_index = s.amax_index;
  }
}

__device__ inline void AddScalars(const DeviceSums& from, DeviceSums* to) {
  to->sum += from.sum;
  to->abs_sum += from.abs_sum;
  to->squares += from.squares;
  to->nan += from.nan;
  to->inf_pos += from.inf_pos;
  to->inf_neg += from.inf_neg;
  to->zero += from.zero;
  to->h_set += from.h_set;
  to->h_pos += from.h_pos;
  to->min = fminf(to->min, from.min);
  to->max = fmaxf(to->max, from.max);
  TakeLarger(from.amax, from.amax_index, &to->amax, &to->amax_index);
}

// One block's sums to its part of the scratch; of the sketch and the exponents
// only what was asked for, as small tensors take no longer than this does.
template <bool kSketch, bool kExponents>
__device__ inline void ReduceBlock(const ThreadSums& t, SharedSums* shared,
                                   DeviceSums* part) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (kSketch) {
    shared->sketch[warp][lane] = t.sketch[0];
    shared->sketch[warp][lane + 32] = t.sketch[1];
  }
  ReduceWarp(t, &shared->warps[warp]);
  __syncthreads();
  if (threadIdx.x == 0) {
    DeviceSums total = shared->warps[0];
    for (int w = 1; w < kWarps; ++w) AddScalars(shared->warps[w], &total);
    part->sum = total.sum, part->abs_sum = total.abs_sum;
    part->squares = total.squares, part->nan = total.nan;
    part->inf_pos = total.inf_pos, part->inf_neg = total.inf_neg;
    part->zero = total.zero, part->h_set = total.h_set;
    part->h_pos = total.h_pos, part->min = total.min, part->max = total.max;
    part->amax = total.amax, part->amax_index = total.amax_index;
  }
  if (kSketch && threadIdx.x < kSketchSize) {
    double sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += shared->sketch[w][threadIdx.x];
    part->sketch[threadIdx.x] = sum;
  }
  if (kExponents) {
    part->exponents[threadIdx.x] = shared->exponents[threadIdx.x];
  }
}
static_assert(kThreads == kNumExponents);

// The last block to finish adds the parts, in their order.
template <typename Type, bool kSketch, bool kExponents>
__device__ inline void ReduceParts(const typename Type::Raw* data,
                                   int64_t numel, int num_parts,
                                   SharedSums* shared, Scratch* scratch) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  DeviceSums* const out = &scratch->result;
  ThreadSums t;
  for (int i = threadIdx.x; i < num_parts; i += kThreads) {
    const DeviceSums& p = scratch->parts[i];
    t.sum += p.sum, t.abs_sum += p.abs_sum, t.squares += p.squares;
    t.nan += static_cast<uint32_t>(p.nan);
    t.inf_pos += static_cast<uint32_t>(p.inf_pos);
    t.inf_neg += static_cast<uint32_t>(p.inf_neg);
    t.zero += p.zero, t.h_set += p.h_set, t.h_pos += p.h_pos;
    t.min = fminf(t.min, p.min), t.max = fmaxf(t.max, p.max);
    TakeLarger(p.amax, p.amax_index, &t.amax, &t.amax_index);
  }
  __syncthreads();
  ReduceWarp(t, &shared->warps[warp]);
  if (kSketch) {
    // Buckets: four threads each take a quarter of the parts.
    const int bucket = threadIdx.x % kSketchSize;
    const int quarter = threadIdx.x / kSketchSize;
    double sum = 0;
#pragma unroll 4
    for (int i = quarter; i < num_parts; i += kThreads / kSketchSize) {
      sum += scratch->parts[i].sketch[bucket];
    }
    shared->sketch[quarter][bucket] = sum;
  }
  if (kExponents) {
    unsigned int count = 0;
#pragma unroll 8
    for (int i = 0; i < num_parts; ++i) {
      count += scratch->parts[i].exponents[threadIdx.x];
    }
    out->exponents[threadIdx.x] = count;
  }
  if (warp == 0) {
    out->samples[lane] =
        numel > 0 ? Type::ToFloat(data[GroupHash(lane ^ kSampleSeed) % numel])
                  : 0.0f;
  }
  __syncthreads();
  if (kSketch && threadIdx.x < kSketchSize) {
    double total = 0;
    for (int q = 0; q < kThreads / kSketchSize; ++q) {
      total += shared->sketch[q][threadIdx.x];
    }
    out->sketch[threadIdx.x] = total;
  }
  if (threadIdx.x == 0) {
    DeviceSums total = shared->warps[0];
    for (int w = 1; w < kWarps; ++w) AddScalars(shared->warps[w], &total);
    out->sum = total.sum, out->abs_sum = total.abs_sum;
    out->squares = total.squares, out->nan = total.nan;
    out->inf_pos = total.inf_pos, out->inf_neg = total.inf_neg;
    out->zero = total.zero, out->h_set = total.h_set;
    out->h_pos = total.h_pos, out->min = total.min, out->max = total.max;
    out->amax = total.amax, out->amax_index = total.amax_index;
    scratch->finished = 0;  // for the next launch
  }
}

}  // namespace firstframe::internal

#endif  // LIB_STATS_STATS_REDUCE_CUH_
