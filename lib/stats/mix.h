// The integer functions behind hashes, sketch and samples. CPU and CUDA code
// share them, so that both give the same bits.
//
// Elements are taken in groups of 8 by row-major index; 64 groups make a tile.
// Multiplications are 32 x 32 -> 64 bits where they are per element: that is
// one instruction in AVX2, AVX-512 and on a GPU, which a 64-bit mix is not.

#ifndef LIB_STATS_MIX_H_
#define LIB_STATS_MIX_H_

#include <cstdint>

// Always inlined on the host: chunk_kernel.cc is compiled for newer processors
// than the rest, and a shared out-of-line copy could be the one for those.
#ifdef __CUDACC__
#define FF_HOST_DEVICE __host__ __device__ inline
#else
#define FF_HOST_DEVICE __attribute__((always_inline)) inline
#endif

namespace firstframe {

inline constexpr int kGroupSize = 8;    // elements that share a sketch bucket
inline constexpr int kTileGroups = 64;  // groups that fill the 64 buckets once

inline constexpr uint32_t kSetAdd = 0x9E3779B9u;
inline constexpr uint32_t kSetMultiply = 0x85EBCA6Bu;
inline constexpr uint64_t kTileSeed = uint64_t{1} << 62;
inline constexpr uint64_t kSampleSeed = uint64_t{1} << 61;
inline constexpr uint32_t kCanonicalNan = 0x7FC00000u;

// Odd multipliers of the eight positions in a group.
FF_HOST_DEVICE constexpr uint32_t LaneFactor(int lane) {
  constexpr uint32_t kFactors[kGroupSize] = {
      0xA0761D65u, 0xE7037ED1u, 0x8EBC6AF1u, 0x589965CDu,
      0x1D8E4E27u, 0xEB44ACCBu, 0xC2B2AE3Du, 0x27D4EB2Fu};
  return kFactors[lane];
}

// Mixes an index to 64 bits. Two odd multiplications and two folds pass a
// chi-square test on every byte over consecutive indices.
FF_HOST_DEVICE uint64_t GroupHash(uint64_t group) {
  uint64_t u = (group + 1) * 0x9E3779B97F4A7C15ull;
  u ^= u >> 32;
  u *= 0xD6E8FEB86659FD93ull;
  return u ^ (u >> 32);
}

// The factor of a group's positional hash.
FF_HOST_DEVICE uint64_t GroupKey(uint64_t hash) { return hash | 1; }

// Element e of the group enters the sketch negated when bit e / 2 (e even) or
// 16 + e / 2 (e odd) is set: two 16-bit elements of one 32-bit word then take
// their signs from it with a shift and a mask.
FF_HOST_DEVICE uint32_t GroupSigns(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 40) & 0x000F000Fu;
}

// Bucket of group `q` (0 to 63) of tile t is q ^ TileRotation(t).
FF_HOST_DEVICE uint32_t TileRotation(uint64_t tile) {
  return static_cast<uint32_t>(GroupHash(tile ^ kTileSeed) >> 20) & 63;
}

// An element's part of the order-free hash. Zero bits give 0.
FF_HOST_DEVICE uint64_t SetMix(uint32_t bits) {
  return static_cast<uint64_t>(bits + kSetAdd) * (bits * kSetMultiply);
}

// The same for elements of 64 bits (float64, 64-bit integers, complex64).
FF_HOST_DEVICE uint64_t SetMix64(uint64_t bits) {
  const uint32_t low = static_cast<uint32_t>(bits);
  const uint32_t high = static_cast<uint32_t>(bits >> 32);
  const uint64_t a = SetMix(low);
  const uint64_t b = SetMix(high ^ static_cast<uint32_t>(a >> 32));
  return a + ((b << 29) | (b >> 35));
}

}  // namespace firstframe

#endif  // LIB_STATS_MIX_H_
