// FF_CHUNK_FUNCTION names the function, the copts choose the instruction set.
// Everything else is in an unnamed namespace: no inline function compiled for
// a newer processor may reach the linker under a shared name.

#include <cstring>

#include "lib/stats/chunk.h"
#include "lib/stats/mix.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace firstframe::internal {
namespace {

// GCC vectors; narrower machines get several registers each.
using F8 = float __attribute__((vector_size(32), aligned(4)));
using I8 = int32_t __attribute__((vector_size(32), aligned(4)));
using U8 = uint32_t __attribute__((vector_size(32), aligned(4)));
using H8 = uint16_t __attribute__((vector_size(16), aligned(2)));
using D8 = double __attribute__((vector_size(64), aligned(8)));
using Q8 = uint64_t __attribute__((vector_size(64), aligned(8)));

#define FF_INLINE inline __attribute__((always_inline))

template <typename V>
FF_INLINE V Load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}
template <typename V>
FF_INLINE void Store(void* to, V v) {
  std::memcpy(to, &v, sizeof(v));
}

// Multiplies 8 pairs of 32-bit numbers to 64 bits.
FF_INLINE Q8 MultiplyWide(U8 a, U8 b) {
#if defined(__AVX512F__)
  return (Q8)_mm512_mul_epu32(_mm512_cvtepu32_epi64((__m256i)a),
                              _mm512_cvtepu32_epi64((__m256i)b));
#elif defined(__AVX2__)
  const __m256i low = _mm256_mul_epu32(
      _mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)a)),
      _mm256_cvtepu32_epi64(_mm256_castsi256_si128((__m256i)b)));
  const __m256i high = _mm256_mul_epu32(
      _mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)a, 1)),
      _mm256_cvtepu32_epi64(_mm256_extracti128_si256((__m256i)b, 1)));
  Q8 out;
  std::memcpy(&out, &low, 32);
  std::memcpy(reinterpret_cast<char*>(&out) + 32, &high, 32);
  return out;
#else
  return __builtin_convertvector(a, Q8) * __builtin_convertvector(b, Q8);
#endif
}

template <typename V>
auto SumLanes(V v) {
  auto sum = v[0];
  for (int i = 1; i < 8; ++i) sum += v[i];
  return sum;
}

// The sign of each of 8 elements, for each pattern of 8 bits: those of the even
// elements, then those of the odd ones.
struct SignTable {
  uint32_t mask[256][8];
  constexpr SignTable() : mask() {
    for (int bits = 0; bits < 256; ++bits) {
      for (int e = 0; e < 8; ++e) {
        mask[bits][e] = (bits >> (e % 2 * 4 + e / 2) & 1) << 31;
      }
    }
  }
};
constexpr SignTable kSigns;

// float16 without F16C: shift into place, scale by 2^112 (exact, also for
// subnormals), then give infinities and NaN their exponent.
FF_INLINE F8 HalfToFloat(H8 half) {
  const U8 bits = __builtin_convertvector(half, U8);
  U8 out = (U8)((F8)((bits & 0x7FFF) << 13) * 0x1p112f);
  out |= (U8)((bits & 0x7C00) == 0x7C00) & 0x7F800000u;
  return (F8)(out | (bits & 0x8000) << 16);
}

FF_INLINE void Convert(const ChunkInput& in, int64_t begin, int64_t count,
                       float* block) {
  if (in.source == Source::kFloats) {
    std::memcpy(block, static_cast<const char*>(in.data) + begin * 4,
                count * 4);
    return;
  }
  const char* from = static_cast<const char*>(in.data) + begin * 2;
  const int64_t whole = count & ~int64_t{7};
  const bool half = in.source == Source::kF16;
  H8 tail = {};
  std::memcpy(&tail, from + whole * 2, (count - whole) * 2);
  for (int64_t i = 0; i < count; i += 8) {
    const H8 raw = i < whole ? Load<H8>(from + i * 2) : tail;
    const F8 value =
        half ? HalfToFloat(raw) : (F8)(__builtin_convertvector(raw, U8) << 16);
    Store(block + i, value);  // the block has room for a whole last group
  }
}

struct Lanes {
  D8 sum[2] = {};     // of x - pivot
  D8 square[2] = {};  // of (x - pivot)^2
  D8 absolute[2] = {};
  F8 min, max;
  I8 zeros = {};
  Q8 set = {}, low = {}, high = {};
  int64_t finite = 0;
};

FF_INLINE void AddMoments(const float* block, int64_t count, double pivot,
                          Lanes* lanes) {
  for (int64_t i = 0; i < count; i += 8) {
    const int k = i >> 3 & 1;
    const F8 x = Load<F8>(block + i);
    const D8 wide = __builtin_convertvector(x, D8);
    const D8 d = wide - pivot;
    lanes->sum[k] += d;
    lanes->square[k] += d * d;
    lanes->absolute[k] += (D8)((Q8)wide & 0x7FFFFFFFFFFFFFFFull);
    lanes->min = x < lanes->min ? x : lanes->min;
    lanes->max = x > lanes->max ? x : lanes->max;
    lanes->zeros -= (I8)(x == 0.0f);
  }
}

FF_INLINE uint32_t LargestMagnitudeBits(const float* block, int64_t count) {
  I8 largest = {};
  for (int64_t i = 0; i < count; i += 8) {
    const I8 bits = Load<I8>(block + i) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  int32_t most = 0;
  for (int e = 0; e < 8; ++e) most = largest[e] > most ? largest[e] : most;
  return static_cast<uint32_t>(most);
}

FF_INLINE void AddHashes(const float* block, int64_t count, uint64_t group,
                         Lanes* lanes) {
  for (int64_t i = 0; i < count; i += 8, ++group) {
    const U8 bits = Load<U8>(block + i);
    const uint64_t key = GroupKey(GroupHash(group));
    lanes->set += MultiplyWide(bits + kSetAdd, bits * kSetMultiply);
    const U8 key_low = U8{} + static_cast<uint32_t>(key);
    const U8 key_high = U8{} + static_cast<uint32_t>(key >> 32);
    lanes->low += MultiplyWide(bits, key_low);
    lanes->high += MultiplyWide(bits, key_high);
  }
}

FF_INLINE void AddSketch(const float* block, int64_t count, uint64_t group,
                         F8* buckets) {
  uint32_t rotation = TileRotation(group / kTileGroups);
  for (int64_t i = 0; i < count; i += 8, ++group) {
    if (group % kTileGroups == 0) rotation = TileRotation(group / kTileGroups);
    const uint32_t signs = GroupSigns(GroupHash(group));
    const U8 flip = Load<U8>(kSigns.mask[(signs | signs >> 12) & 0xFF]);
    buckets[(group % kTileGroups) ^ rotation] +=
        (F8)(Load<U8>(block + i) ^ flip);
  }
}

// Four tables, so that equal neighbours do not wait for each other.
FF_INLINE void AddExponents(const float* block, int64_t count,
                            uint32_t (*table)[kNumExponents]) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, block + i, 4);
    ++table[i & 3][bits >> 23 & 0xFF];
  }
}

// Counts and clears what is not finite: NaN becomes canonical for the hash in
// `block`, and 0 in `clean`.
void Separate(float* block, float* clean, int64_t count, TensorStats* stats) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, block + i, 4);
    clean[i] = block[i];
    if ((bits & 0x7F800000u) != 0x7F800000u) continue;
    clean[i] = 0;
    if ((bits & 0x007FFFFFu) != 0) {
      ++stats->nan;
      std::memcpy(block + i, &kCanonicalNan, 4);
    } else {
      ++(bits >> 31 ? stats->inf_neg : stats->inf_pos);
    }
  }
}

// For blocks with non-finite elements and for tails: one element at a time,
// into the lane that the vector loop would use.
void AddMomentsScalar(const float* block, const float* clean, int64_t begin,
                      int64_t count, double pivot, Lanes* lanes) {
  for (int64_t i = begin; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, block + i, 4);
    if ((bits & 0x7F800000u) == 0x7F800000u) continue;
    const int k = i >> 3 & 1, e = i & 7;
    const double d = clean[i] - pivot;
    lanes->sum[k][e] += d;
    lanes->square[k][e] += d * d;
    lanes->absolute[k][e] += clean[i] < 0 ? -clean[i] : clean[i];
    lanes->min[e] = clean[i] < lanes->min[e] ? clean[i] : lanes->min[e];
    lanes->max[e] = clean[i] > lanes->max[e] ? clean[i] : lanes->max[e];
    lanes->zeros[e] += clean[i] == 0;
    ++lanes->finite;
  }
}

int64_t FirstOfMagnitude(const float* block, int64_t count, uint32_t bits) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t other;
    std::memcpy(&other, block + i, 4);
    if ((other & 0x7FFFFFFFu) == bits) return i;
  }
  return -1;
}

float Finite(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return (bits & 0x7F800000u) == 0x7F800000u ? 0.0f : value;
}

void Finish(const ChunkInput& in, double pivot, const Lanes& lanes,
            const F8* buckets, const uint32_t (*table)[kNumExponents],
            TensorStats* stats) {
  stats->numel = in.count;
  for (int e = 0; e < 8; ++e) stats->zero += lanes.zeros[e];
  if (lanes.finite > 0) {
    const double n = static_cast<double>(lanes.finite);
    const double sum = SumLanes(lanes.sum[0] + lanes.sum[1]);
    const double square = SumLanes(lanes.square[0] + lanes.square[1]);
    stats->sum = sum + n * pivot;
    stats->abs_sum = SumLanes(lanes.absolute[0] + lanes.absolute[1]);
    stats->mean = pivot + sum / n;
    const double m2 = square - sum * (sum / n);
    stats->m2 = m2 > 0 ? m2 : 0;
    stats->min = lanes.min[0], stats->max = lanes.max[0];
    for (int e = 1; e < 8; ++e) {
      if (lanes.min[e] < stats->min) stats->min = lanes.min[e];
      if (lanes.max[e] > stats->max) stats->max = lanes.max[e];
    }
  }
  if (in.request.hashes) {
    stats->h_set = SumLanes(lanes.set);
    for (int e = 0; e < 8; ++e) {
      stats->h_pos += LaneFactor(e) * (lanes.low[e] + (lanes.high[e] << 32));
    }
  }
  if (in.request.sketch) {
    for (int j = 0; j < kSketchSize; ++j) {
      stats->sketch[j] = SumLanes(__builtin_convertvector(buckets[j], D8));
    }
  }
  if (in.request.exponents) {
    for (int j = 0; j < kNumExponents - 1; ++j) {
      stats->exponents[j] =
          int64_t{table[0][j]} + table[1][j] + table[2][j] + table[3][j];
    }
  }
}

}  // namespace

void FF_CHUNK_FUNCTION(const ChunkInput& in, TensorStats* stats) {
  if (in.count == 0) return;
  alignas(64) float block[kBlockElements + 8];
  alignas(64) float clean[kBlockElements + 8];
  alignas(64) F8 buckets[kSketchSize];
  uint32_t table[4][kNumExponents];
  std::memset(buckets, 0, sizeof(buckets));
  if (in.request.exponents) std::memset(table, 0, sizeof(table));

  Convert(in, 0, 1, block);
  const double pivot = Finite(block[0]);
  Lanes lanes;
  lanes.min = F8{} + __builtin_inff();
  lanes.max = F8{} - __builtin_inff();
  uint32_t amax_bits = 0;
  for (int64_t begin = 0; begin < in.count; begin += kBlockElements) {
    const int64_t left = in.count - begin;
    const int64_t count = left < kBlockElements ? left : kBlockElements;
    Convert(in, begin, count, block);
    // Zeros behind the end add nothing to hashes and sketch.
    std::memset(block + count, 0, 8 * sizeof(float));

    float* finite = block;
    uint32_t most = LargestMagnitudeBits(block, count);
    if (most >= 0x7F800000u) {
      Separate(block, clean, count, stats);
      std::memset(clean + count, 0, 8 * sizeof(float));
      finite = clean;
      most = LargestMagnitudeBits(clean, count);
      AddMomentsScalar(block, clean, 0, count, pivot, &lanes);
    } else {
      const int64_t whole = count & ~int64_t{7};
      AddMoments(block, whole, pivot, &lanes);
      lanes.finite += whole;
      AddMomentsScalar(block, block, whole, count, pivot, &lanes);
    }
    if (lanes.finite > 0 && (stats->amax_index < 0 || most > amax_bits)) {
      amax_bits = most;
      std::memcpy(&stats->amax, &most, 4);
      int64_t at = FirstOfMagnitude(finite, count, most);
      // In a block with NaN the 0 that stands for it may come first.
      while (most == 0 && (FirstOfMagnitude(block + at, 1, 0) != 0)) {
        at += 1 + FirstOfMagnitude(finite + at + 1, count - at - 1, 0);
      }
      stats->amax_index = static_cast<int64_t>(in.first_index) + begin + at;
    }
    const uint64_t group = (in.first_index + begin) / kGroupSize;
    if (in.request.hashes) AddHashes(block, count, group, &lanes);
    if (in.request.sketch) AddSketch(finite, count, group, buckets);
    if (in.request.exponents) AddExponents(block, count, table);
  }
  Finish(in, pivot, lanes, buckets, table, stats);
}

}  // namespace firstframe::internal
