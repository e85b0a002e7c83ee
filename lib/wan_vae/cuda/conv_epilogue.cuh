// What happens to a tile of sums before it is stored: bias, residual, and where
// a tile holds all channels of its pixels also the RMS norm and SiLU that come
// next.

#ifndef LIB_WAN_VAE_CUDA_CONV_EPILOGUE_CUH_
#define LIB_WAN_VAE_CUDA_CONV_EPILOGUE_CUH_

#include "lib/wan_vae/cuda/conv_hopper.cuh"
#include "lib/wan_vae/cuda/vector.cuh"

namespace firstframe::cuda {

// Stores eight channels from `channel` on, which may belong to either side of
// the split.
template <typename T>
__device__ __forceinline__ void StoreOut(const ConvArguments& a, int frame,
                                         int64_t pixel, int channel,
                                         const float (&v)[8]) {
  T* const out = static_cast<T*>(a.out) + pixel * a.out_pitch;
  if (a.split_channel % 8 == 0) {
    const int side = channel >= a.split_channel ? 1 : 0;
    StoreEight(out + a.out_slot[frame][side] * a.out_slot_elements + channel -
                   side * a.split_channel,
               v);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int side = channel + i >= a.split_channel ? 1 : 0;
    if (channel + i < a.out_channels) {
      out[a.out_slot[frame][side] * a.out_slot_elements + channel + i -
          side * a.split_channel] = static_cast<T>(v[i]);
    }
  }
}

// Stores one pixel's share of a lane: channels 32 g + 8 q .. + 7 of every group
// g of 32. `sums` holds both pixels of the lane; `half` says which. All lanes
// of a quad must call together; `inside` says whether the pixel exists.
template <typename Config>
__device__ __forceinline__ void StorePixel(const ConvArguments& a,
                                           float (&sums)[Config::kChannels / 2],
                                           int half, bool inside, int64_t pixel,
                                           int frame, int first_channel,
                                           int quad_lane) {
  using T = typename Element<Config::kMode>::Type;
  constexpr int kGroups = Config::kChannels / 32;
  float square_sum = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int channel = first_channel + 32 * g + 8 * quad_lane;
    if (!inside || channel >= a.out_channels) continue;
    float v[8] = {};
    if (a.bias != nullptr) LoadEight(a.bias + channel, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] += sums[16 * g + 4 * (i / 2) + 2 * half + (i & 1)];
    }
    if (a.residual != nullptr) {
      float r[8];
      LoadEight(static_cast<const T*>(a.residual) +
                    a.residual_slot[frame] * a.residual_slot_elements +
                    pixel * a.residual_pitch + channel,
                r);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] += r[i];
    }
    if (a.out != nullptr) {
      if (a.out_is_float) {
        StoreOut<float>(a, frame, pixel, channel, v);
      } else {
        StoreOut<T>(a, frame, pixel, channel, v);
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      square_sum += v[i] * v[i];
      sums[16 * g + 4 * (i / 2) + 2 * half + (i & 1)] = v[i];
    }
  }
  if (a.norm_out == nullptr) return;
  square_sum += __shfl_xor_sync(0xFFFFFFFF, square_sum, 1);
  square_sum += __shfl_xor_sync(0xFFFFFFFF, square_sum, 2);
  const float scale = sqrtf(static_cast<float>(a.out_channels)) /
                      fmaxf(sqrtf(square_sum), 1e-12f);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    const int channel = first_channel + 32 * g + 8 * quad_lane;
    if (!inside || channel >= a.out_channels) continue;
    float v[8];
    LoadEight(a.gamma + channel, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      v[i] =
          Silu(sums[16 * g + 4 * (i / 2) + 2 * half + (i & 1)] * scale * v[i]);
    }
    StoreEight(static_cast<T*>(a.norm_out) +
                   a.norm_slot[frame] * a.norm_slot_elements +
                   pixel * a.norm_pitch + channel,
               v);
  }
}

// Stores at most eight channels as float32 planes: channels 2 q and 2 q + 1.
template <typename Config>
__device__ __forceinline__ void StorePlanes(const ConvArguments& a,
                                            const float (&sums)[4], int half,
                                            bool inside, int64_t pixel,
                                            int frame, int quad_lane) {
  if (!inside) return;
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int channel = 2 * quad_lane + e;
    if (channel >= a.out_channels) continue;
    const float v = sums[2 * half + e] + a.bias[channel];
    const int64_t plane =
        static_cast<int64_t>(channel) * a.plane_frames + a.out_slot[frame][0];
    static_cast<float*>(a.out)[plane * a.height * a.width + pixel] = v;
  }
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_EPILOGUE_CUH_
