// How the statistics kernel reads each element type: 8 at a time, as float32,
// and as the bits that the hashes take. Internal to lib/stats.

#ifndef LIB_STATS_STATS_ELEMENTS_CUH_
#define LIB_STATS_STATS_ELEMENTS_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "lib/stats/mix.h"

namespace firstframe::internal {

// A group's 8 elements as float32, and as hashed.
struct Group {
  float x[kGroupSize];
};

// --- element types: how to read a whole group at once ---

__device__ inline float Bf16Low(uint32_t word) {
  return __uint_as_float(word << 16);
}
__device__ inline float Bf16High(uint32_t word) {
  return __uint_as_float(word & 0xFFFF0000u);
}

struct Bf16 {
  using Raw = uint16_t;
  using Vector = uint4;
  static constexpr int kVectors = 1;
  static __device__ float ToFloat(uint16_t raw) {
    return __uint_as_float(static_cast<uint32_t>(raw) << 16);
  }
  static __device__ void Unpack(const Vector* v, Group* g) {
    const uint32_t w[4] = {v->x, v->y, v->z, v->w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      g->x[2 * i] = Bf16Low(w[i]);
      g->x[2 * i + 1] = Bf16High(w[i]);
    }
  }
};

struct F16 {
  using Raw = uint16_t;
  using Vector = uint4;
  static constexpr int kVectors = 1;
  static __device__ float ToFloat(uint16_t raw) {
    return __half2float(__ushort_as_half(raw));
  }
  static __device__ void Unpack(const Vector* v, Group* g) {
    const uint32_t w[4] = {v->x, v->y, v->z, v->w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair =
          __half22float2(*reinterpret_cast<const __half2*>(&w[i]));
      g->x[2 * i] = pair.x;
      g->x[2 * i + 1] = pair.y;
    }
  }
};

struct F32 {
  using Raw = float;
  using Vector = float4;
  static constexpr int kVectors = 2;
  static __device__ float ToFloat(float raw) { return raw; }
  static __device__ void Unpack(const Vector* v, Group* g) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      g->x[4 * i] = v[i].x;
      g->x[4 * i + 1] = v[i].y;
      g->x[4 * i + 2] = v[i].z;
      g->x[4 * i + 3] = v[i].w;
    }
  }
};

// Types of 1 byte, 8 at a time.
template <typename Convert, typename RawType>
struct Bytes {
  using Raw = RawType;
  using Vector = uint2;
  static constexpr int kVectors = 1;
  static __device__ float ToFloat(Raw raw) { return Convert()(raw); }
  static __device__ void Unpack(const Vector* v, Group* g) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t word = i < 4 ? v->x : v->y;
      g->x[i] = ToFloat(static_cast<Raw>(word >> (8 * (i & 3))));
    }
  }
};
template <__nv_fp8_interpretation_t kind>
struct FromFp8 {
  __device__ float operator()(uint8_t raw) const {
    const __half_raw half = __nv_cvt_fp8_to_halfraw(raw, kind);
    return __half2float(*reinterpret_cast<const __half*>(&half));
  }
};
struct FromByte {
  __device__ float operator()(uint8_t raw) const { return raw; }
};
struct FromSignedByte {
  __device__ float operator()(int8_t raw) const { return raw; }
};
struct FromBool {
  __device__ float operator()(uint8_t raw) const { return raw != 0; }
};

// Other types, an element at a time.
template <typename RawType>
struct Plain {
  using Raw = RawType;
  using Vector = RawType;
  static constexpr int kVectors = kGroupSize;
  static __device__ float ToFloat(Raw raw) { return static_cast<float>(raw); }
  static __device__ void Unpack(const Vector* v, Group* g) {
#pragma unroll
    for (int i = 0; i < kGroupSize; ++i) g->x[i] = ToFloat(v[i]);
  }
};
struct C64 {
  using Raw = float2;
  using Vector = float2;
  static constexpr int kVectors = kGroupSize;
  static __device__ float ToFloat(float2 raw) { return raw.x; }
  static __device__ void Unpack(const Vector* v, Group* g) {
#pragma unroll
    for (int i = 0; i < kGroupSize; ++i) g->x[i] = v[i].x;
  }
};

// --- hashed bits ---

__device__ inline uint32_t Canonical(float x) {
  const uint32_t bits = __float_as_uint(x);
  return (bits & 0x7FFFFFFFu) > 0x7F800000u ? kCanonicalNan : bits;
}

template <typename Type>
struct OwnBits {
  static constexpr bool value = false;
};
template <>
struct OwnBits<Plain<int32_t>> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(int32_t raw) {
    return static_cast<uint32_t>(raw);
  }
  static constexpr bool kNarrow = true;
};
template <>
struct OwnBits<Plain<uint32_t>> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(uint32_t raw) { return raw; }
  static constexpr bool kNarrow = true;
};
template <>
struct OwnBits<Plain<int64_t>> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(int64_t raw) {
    return static_cast<uint64_t>(raw);
  }
  static constexpr bool kNarrow = false;
};
template <>
struct OwnBits<Plain<uint64_t>> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(uint64_t raw) { return raw; }
  static constexpr bool kNarrow = false;
};
template <>
struct OwnBits<Plain<double>> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(double raw) {
    const uint64_t bits = __double_as_longlong(raw);
    return (bits & 0x7FFFFFFFFFFFFFFFull) > 0x7FF0000000000000ull
               ? 0x7FF8000000000000ull
               : bits;
  }
  static constexpr bool kNarrow = false;
};
template <>
struct OwnBits<C64> {
  static constexpr bool value = true;
  static __device__ uint64_t Of(float2 raw) {
    return Canonical(raw.x) | static_cast<uint64_t>(Canonical(raw.y)) << 32;
  }
  static constexpr bool kNarrow = false;
};

}  // namespace firstframe::internal

#endif  // LIB_STATS_STATS_ELEMENTS_CUH_
