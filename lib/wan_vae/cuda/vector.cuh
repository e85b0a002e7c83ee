// Eight channels at a time, and the activation function.

#ifndef LIB_WAN_VAE_CUDA_VECTOR_CUH_
#define LIB_WAN_VAE_CUDA_VECTOR_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "lib/wan_vae/cuda/conv_arguments.h"

namespace firstframe::cuda {

// Eight neighbouring channels, as float32 or bfloat16.
__device__ __forceinline__ void LoadEight(const float* from, float (&v)[8]) {
  const float4 a = *reinterpret_cast<const float4*>(from);
  const float4 b = *reinterpret_cast<const float4*>(from + 4);
  v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
  v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
}
__device__ __forceinline__ void LoadEight(const __nv_bfloat16* from,
                                          float (&v)[8]) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = __uint_as_float(words[i] << 16);
    v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000);
  }
}
__device__ __forceinline__ void StoreEight(float* to, const float (&v)[8]) {
  *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
  *reinterpret_cast<float4*>(to + 4) = make_float4(v[4], v[5], v[6], v[7]);
}
__device__ __forceinline__ void StoreEight(__nv_bfloat16* to,
                                           const float (&v)[8]) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
    words[i] = *reinterpret_cast<const uint32_t*>(&pair);
  }
  *reinterpret_cast<uint4*>(to) =
      make_uint4(words[0], words[1], words[2], words[3]);
}

template <MathMode kMode>
struct Element {
  using Type = float;
};
template <>
struct Element<MathMode::kBf16> {
  using Type = __nv_bfloat16;
};

// x * sigmoid(x); about 4 units in the last place.
__device__ __forceinline__ float Silu(float v) {
  return __fdividef(v, 1.0f + __expf(-v));
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_VECTOR_CUH_
