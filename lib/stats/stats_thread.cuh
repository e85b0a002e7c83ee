// What one thread of the statistics kernel gathers from its groups of 8
// elements. Internal to lib/stats.

#ifndef LIB_STATS_STATS_THREAD_CUH_
#define LIB_STATS_STATS_THREAD_CUH_

#include <cstdint>
#include <type_traits>

#include "lib/stats/mix.h"
#include "lib/stats/stats_elements.cuh"

namespace firstframe::internal {

inline constexpr float kHuge = 3.402823466e38f;  // FLT_MAX

struct ThreadSums {
  double sum = 0, abs_sum = 0, squares = 0;
  double sketch[2] = {0, 0};  // buckets lane and lane + 32
  uint64_t h_set = 0, h_pos = 0;
  uint32_t nan = 0, inf_pos = 0, inf_neg = 0;
  unsigned long long zero = 0;
  long long amax_index = -1;
  float min = __builtin_huge_valf(), max = -__builtin_huge_valf();
  float amax = -1;
};

// One element into everything but hashes and sketch: for groups with something
// that is not finite, where clarity beats speed. Returns the finite value or 0.
__device__ inline float AddOdd(float x, ThreadSums* t) {
  if (isnan(x)) {
    ++t->nan;
    return 0;
  }
  if (isinf(x)) {
    ++(x > 0 ? t->inf_pos : t->inf_neg);
    return 0;
  }
  t->sum += x;
  t->abs_sum += fabsf(x);
  t->squares += static_cast<double>(x) * x;
  t->zero += x == 0;
  t->min = fminf(t->min, x);
  t->max = fmaxf(t->max, x);
  return x;
}

__device__ inline void NoteLargest(const Group& g, int count, float largest,
                                   uint64_t first, ThreadSums* t) {
  if (!(largest > t->amax)) return;
  t->amax = largest;
#pragma unroll
  for (int e = kGroupSize - 1; e >= 0; --e) {
    if (e < count && fabsf(g.x[e]) == largest) t->amax_index = first + e;
  }
}

// Sums of 8: float32 for types of 16 bits and less, whose squares are exact
// there, else float64.
template <typename Type>
__device__ inline void AddMoments(const Group& g, float abs_sum,
                                  ThreadSums* t) {
  if constexpr (sizeof(typename Type::Raw) <= 2) {
    float sum = 0, squares = 0;
#pragma unroll
    for (int e = 0; e < kGroupSize; ++e) {
      sum += g.x[e];
      squares = fmaf(g.x[e], g.x[e], squares);
    }
    t->sum += sum;
    t->abs_sum += abs_sum;
    t->squares += squares;
  } else {
    double sum = 0, abs_sums = 0, squares = 0;
#pragma unroll
    for (int e = 0; e < kGroupSize; ++e) {
      const double x = g.x[e];
      sum += x;
      abs_sums += fabs(x);
      squares = fma(x, x, squares);
    }
    t->sum += sum;
    t->abs_sum += abs_sums;
    t->squares += squares;
  }
}

__device__ inline float SignedSum(const Group& g, uint32_t signs) {
  float sum = 0;
#pragma unroll
  for (int e = 0; e < kGroupSize; ++e) {
    const uint32_t flip = (signs << (31 - (e % 2 * 16 + e / 2))) & 0x80000000u;
    sum += __uint_as_float(__float_as_uint(g.x[e]) ^ flip);
  }
  return sum;
}

// The same on packed words: two signs a shift.
__device__ inline float SignedSumBf16(uint4 v, uint32_t signs) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
  float low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t flipped = w[i] ^ ((signs << (15 - i)) & 0x80008000u);
    low += Bf16Low(flipped);
    high += Bf16High(flipped);
  }
  return low + high;
}

__device__ inline void HashGroup(const Group& g, uint64_t key, ThreadSums* t) {
  uint64_t position = 0;
#pragma unroll
  for (int e = 0; e < kGroupSize; ++e) {
    const uint32_t bits = __float_as_uint(g.x[e]);
    t->h_set += SetMix(bits);
    position += static_cast<uint64_t>(LaneFactor(e)) * bits;
  }
  t->h_pos += key * position;
}

template <typename Type>
__device__ inline void HashOwn(const typename Type::Vector* v, int count,
                               uint64_t key, ThreadSums* t) {
  uint64_t position = 0;
  for (int e = 0; e < count; ++e) {
    const uint64_t bits = OwnBits<Type>::Of(v[e]);
    t->h_set += OwnBits<Type>::kNarrow ? SetMix(static_cast<uint32_t>(bits))
                                       : SetMix64(bits);
    position += LaneFactor(e) * bits;
  }
  t->h_pos += key * position;
}

struct Extremes {
  float min, max, abs_sum;
  bool has_zero;
};

template <typename Type>
__device__ inline Extremes ExtremesOf(const Group& g,
                                      const typename Type::Vector* v) {
  Extremes x;
  float least = kHuge;
  x.abs_sum = 0;
  x.min = x.max = g.x[0];
#pragma unroll
  for (int e = 0; e < kGroupSize; ++e) {
    x.abs_sum += fabsf(g.x[e]);
    if constexpr (!std::is_same_v<Type, Bf16>) {
      x.min = fminf(x.min, g.x[e]);
      x.max = fmaxf(x.max, g.x[e]);
      least = fminf(least, fabsf(g.x[e]));
    }
  }
  if constexpr (std::is_same_v<Type, Bf16>) {
    // Two elements an instruction.
    const __nv_bfloat162* p = reinterpret_cast<const __nv_bfloat162*>(v);
    const __nv_bfloat162 low =
        __hmin2(__hmin2(p[0], p[1]), __hmin2(p[2], p[3]));
    const __nv_bfloat162 high =
        __hmax2(__hmax2(p[0], p[1]), __hmax2(p[2], p[3]));
    const __nv_bfloat162 small = __hmin2(__hmin2(__habs2(p[0]), __habs2(p[1])),
                                         __hmin2(__habs2(p[2]), __habs2(p[3])));
    x.min = fminf(__low2float(low), __high2float(low));
    x.max = fmaxf(__low2float(high), __high2float(high));
    least = fminf(__low2float(small), __high2float(small));
  }
  x.has_zero = least == 0;
  return x;
}

// A group of 8 elements of which `count` are there; the rest is zero.
template <typename Type, bool kHash, bool kSketch, bool kExponents>
__device__ inline void AddGroup(const typename Type::Vector* v, int count,
                                uint64_t group, int slot, ThreadSums* t,
                                unsigned int* exponents) {
  Group g;
  Type::Unpack(v, &g);
  const uint64_t first = group * kGroupSize;
  const uint64_t hash = kHash || kSketch ? GroupHash(group) : 0;
  const Extremes x = ExtremesOf<Type>(g, v);
  if constexpr (kHash && OwnBits<Type>::value) {
    HashOwn<Type>(v, count, GroupKey(hash), t);
  }
  if constexpr (kExponents) {
    for (int e = 0; e < count; ++e) {
      const uint32_t bin = __float_as_uint(g.x[e]) >> 23 & 0xFF;
      if (bin < 255) atomicAdd(&exponents[bin], 1u);
    }
  }
  if (count == kGroupSize && x.abs_sum <= kHuge) {
    t->min = fminf(t->min, x.min);
    t->max = fmaxf(t->max, x.max);
    NoteLargest(g, count, fmaxf(fabsf(x.min), fabsf(x.max)), first, t);
    if (x.has_zero) {
#pragma unroll
      for (int e = 0; e < kGroupSize; ++e) t->zero += g.x[e] == 0;
    }
    AddMoments<Type>(g, x.abs_sum, t);
    if constexpr (kHash && !OwnBits<Type>::value) {
      HashGroup(g, GroupKey(hash), t);
    }
    if constexpr (kSketch) {
      if constexpr (std::is_same_v<Type, Bf16>) {
        t->sketch[slot] += SignedSumBf16(*v, GroupSigns(hash));
      } else {
        t->sketch[slot] += SignedSum(g, GroupSigns(hash));
      }
    }
    return;
  }
  // NaN, infinities, a float32 sum that overflows, or the end of the tensor.
  if constexpr (kHash && !OwnBits<Type>::value) {
    Group canonical = g;
    for (int e = 0; e < kGroupSize; ++e) {
      canonical.x[e] = __uint_as_float(Canonical(g.x[e]));
    }
    HashGroup(canonical, GroupKey(hash), t);
  }
  float largest = -1;
  Group finite;
  for (int e = 0; e < kGroupSize; ++e) finite.x[e] = 0;
  for (int e = 0; e < count; ++e) {
    finite.x[e] = AddOdd(g.x[e], t);
    if (isfinite(g.x[e])) largest = fmaxf(largest, fabsf(g.x[e]));
  }
  if (largest > t->amax) {
    t->amax = largest;
    for (int e = count - 1; e >= 0; --e) {
      if (fabsf(g.x[e]) == largest) t->amax_index = first + e;
    }
  }
  if constexpr (kSketch) {
    // In float64: the group may hold values whose float32 sum overflows.
    double sum = 0;
    for (int e = 0; e < kGroupSize; ++e) {
      const bool flip = GroupSigns(hash) >> (e % 2 * 16 + e / 2) & 1;
      sum += flip ? -finite.x[e] : finite.x[e];
    }
    t->sketch[slot] += sum;
  }
}

}  // namespace firstframe::internal

#endif  // LIB_STATS_STATS_THREAD_CUH_
