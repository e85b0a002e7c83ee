// The convolution kernel for Hopper (sm_90a): an implicit matrix product of
// output pixels by output channels, over taps and input channels.
//
// A block holds kPixelRows x 16 output pixels and N output channels. One warp
// copies; twelve multiply. For each earlier frame and each chunk of input
// channels the copy engine brings the window of input that the tile's taps look
// at, once (zeros come by themselves where it leaves the frame), and for each
// tap a tile of weights. A warp reads its pixels for a tap from the window at
// the tap's offset straight into registers, as the left operand of wgmma, so
// padding, enlarging and striding cost only an address. Blocks stay and take
// tile after tile, so that the copies of the next run under the last one's
// stores.
//
// Registers hold words of a pixel's channels four at a time, 4q..4q+3 of 16 in
// lane q: in the instruction's order of the inner dimension these are columns
// q and q + 4 of two steps. Weights are packed in that order (pack.h).
//
// MathMode::kFp32 splits each value x into high = x rounded to TF32 and low =
// x - high, and sums low*high + high*low + high*high: what is lost is near
// 2^-22 of a product. Tensor cores round sums towards zero, a bias that grows
// with their number, so every three taps the sum moves to float32 registers
// with an ordinary addition. (Ootomo and Yokota, "Recovering single precision
// accuracy from Tensor Cores", 2022.)

#ifndef LIB_WAN_VAE_CUDA_CONV_HOPPER_CUH_
#define LIB_WAN_VAE_CUDA_CONV_HOPPER_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "lib/wan_vae/cuda/barrier.cuh"
#include "lib/wan_vae/cuda/conv_arguments.h"
#include "lib/wan_vae/cuda/wgmma.cuh"

namespace firstframe::cuda {

inline constexpr int kMultiplyGroups = 3;  // warpgroups of 4 warps
inline constexpr int kMultiplyWarps = 4 * kMultiplyGroups;
inline constexpr int kBlockThreads = 128 * (kMultiplyGroups + 1);
inline constexpr int kTileColumns = 16;
inline constexpr int kRowBytes = 4 * kWordsPerChunk;
inline constexpr int kSharedLimit = 227 * 1024;

// kBlocks: 64-pixel blocks for each warpgroup. kWindow: 1 or 3 taps a side.
template <MathMode kModeValue, int N, int kBlocks, int kWindow,
          Resample kResampleValue>
struct ConvConfig {
  static constexpr MathMode kMode = kModeValue;
  static constexpr int kChannels = N;
  static constexpr int kBlocksPerGroup = kBlocks;
  static constexpr int kSide = kWindow;
  static constexpr Resample kResample = kResampleValue;

  static constexpr int kTaps = kWindow * kWindow;
  static constexpr int kTileRows = 4 * kMultiplyGroups * kBlocks;
  static constexpr int WindowSize(int pixels) {
    if (kResample == Resample::kUp) return pixels / 2 + 2;
    if (kResample == Resample::kDown) return 2 * pixels + 1;
    return pixels + kWindow - 1;
  }
  static constexpr int kWindowRows = WindowSize(kTileRows);
  static constexpr int kWindowColumns = WindowSize(kTileColumns);
  static constexpr int kWindowBytes = kWindowRows * kWindowColumns * kRowBytes;
  static constexpr int kWindowStride = (kWindowBytes + 1023) / 1024 * 1024;
  static constexpr int kWeightParts = kMode == MathMode::kFp32 ? 2 : 1;
  static constexpr int kPartBytes = N * kRowBytes;
  static constexpr int kWeightBytes = kPartBytes * kWeightParts;

  // Two windows and as many weight tiles as fit, up to eight.
  static constexpr int kBarrierBytes = 1024;
  static constexpr int kRoom = kSharedLimit - kBarrierBytes - 1024;
  static constexpr int kWindowStages =
      kRoom - 2 * kWindowStride >= 3 * kWeightBytes ? 2 : 1;
  static constexpr int kFitting =
      (kRoom - kWindowStages * kWindowStride) / kWeightBytes;
  static constexpr int kWeightStages = kFitting > 8 ? 8 : kFitting;
  static constexpr int kSharedBytes = kBarrierBytes + 1024 +
                                      kWindowStages * kWindowStride +
                                      kWeightStages * kWeightBytes;
  static_assert(kWeightStages >= 2);
};

// A place in a ring of stages and the parity of its current phase.
template <int kStages>
struct RingPosition {
  int stage = 0;
  int parity = 0;
  __device__ __forceinline__ void Advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct TilePosition {
  int frame;
  int y;
  int x;
  int n;
};

// Channels of one place first: they share its window in the L2 cache.
__device__ __forceinline__ TilePosition LocateTile(const ConvArguments& a,
                                                   int tile) {
  TilePosition position;
  position.n = tile % a.tiles_n;
  tile /= a.tiles_n;
  position.x = tile % a.tiles_x;
  tile /= a.tiles_x;
  position.y = tile % a.tiles_y;
  position.frame = tile / a.tiles_y;
  return position;
}

template <typename Config>
struct SharedLayout {
  uint32_t window_full;
  uint32_t window_empty;
  uint32_t weights_full;
  uint32_t weights_empty;
  uint32_t windows;
  uint32_t weights;

  __device__ __forceinline__ explicit SharedLayout(uint32_t base) {
    window_full = base;
    window_empty = base + 8 * Config::kWindowStages;
    weights_full = window_empty + 8 * Config::kWindowStages;
    weights_empty = weights_full + 8 * Config::kWeightStages;
    windows = (base + Config::kBarrierBytes + 1023) & ~1023u;
    weights = windows + Config::kWindowStages * Config::kWindowStride;
  }
};

// Runs in one thread: all copies of all tiles of this block.
template <typename Config>
__device__ void CopyTiles(const CUtensorMap* input, const ConvArguments& a,
                          const SharedLayout<Config>& shared, int tiles) {
  constexpr int kChannelsPerChunk =
      Config::kMode == MathMode::kBf16 ? 2 * kWordsPerChunk : kWordsPerChunk;
  RingPosition<Config::kWindowStages> window{0, 1};
  RingPosition<Config::kWeightStages> weight{0, 1};
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const TilePosition at = LocateTile(a, tile);
    int x = at.x * kTileColumns;
    int y = at.y * Config::kTileRows;
    if constexpr (Config::kResample == Resample::kUp) {
      x = x / 2 - 1;
      y = y / 2 - 1;
    } else if constexpr (Config::kResample == Resample::kDown) {
      x *= 2;
      y *= 2;
    } else {
      x -= Config::kSide / 2;
      y -= Config::kSide / 2;
    }
    for (int t = 0; t < a.time_taps; ++t) {
      const int slot = a.in_slot[at.frame][t];
      if (slot < 0) continue;
      const char* from =
          static_cast<const char*>(a.weights) +
          static_cast<int64_t>((at.n * a.time_taps + t) * a.in_chunks) *
              (Config::kTaps * Config::kWeightBytes);
      for (int chunk = 0; chunk < a.in_chunks; ++chunk) {
        BarrierWait(shared.window_empty + 8 * window.stage, window.parity);
        const uint32_t full = shared.window_full + 8 * window.stage;
        BarrierExpect(full, Config::kWindowBytes);
        TensorLoad(shared.windows + window.stage * Config::kWindowStride, input,
                   chunk * kChannelsPerChunk, x, y, slot, full);
        window.Advance();
        for (int tap = 0; tap < Config::kTaps; ++tap) {
          BarrierWait(shared.weights_empty + 8 * weight.stage, weight.parity);
          const uint32_t weights_full = shared.weights_full + 8 * weight.stage;
          BarrierExpect(weights_full, Config::kWeightBytes);
          BulkLoad(shared.weights + weight.stage * Config::kWeightBytes, from,
                   Config::kWeightBytes, weights_full);
          from += Config::kWeightBytes;
          weight.Advance();
        }
      }
    }
  }
}

// A warp's share of a 64-pixel block for half a tap: 16 words of 16 pixels.
// words[u][i] is register i of the left operand of step u.
struct Fragment {
  uint32_t words[2][4];
};

__device__ __forceinline__ uint4 LoadShared(uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}

// Where pixel (y, x) of the tile looks for tap (i, j): a row of the window.
template <typename Config>
__device__ __forceinline__ int WindowRow(int y, int x, int i, int j) {
  if constexpr (Config::kResample == Resample::kUp) {
    y = (y + i + 1) >> 1;
    x = (x + j + 1) >> 1;
  } else if constexpr (Config::kResample == Resample::kDown) {
    y = 2 * y + i;
    x = 2 * x + j;
  } else {
    y += i;
    x += j;
  }
  return y * Config::kWindowColumns + x;
}

template <typename Config>
__device__ __forceinline__ void LoadFragment(uint32_t window, int y, int x,
                                             int tap, int half, int lane,
                                             Fragment& fragment) {
  const int i = tap / Config::kSide;
  const int j = tap % Config::kSide;
  const int quarter = (lane & 3) | (half << 2);
  const int upper = WindowRow<Config>(y, x, i, j);
  const int lower = WindowRow<Config>(y, x + 8, i, j);
  const uint4 u =
      LoadShared(window + upper * kRowBytes + ((quarter ^ (upper & 7)) << 4));
  const uint4 v =
      LoadShared(window + lower * kRowBytes + ((quarter ^ (lower & 7)) << 4));
  fragment.words[0][0] = u.x;
  fragment.words[0][1] = v.x;
  fragment.words[0][2] = u.y;
  fragment.words[0][3] = v.y;
  fragment.words[1][0] = u.z;
  fragment.words[1][1] = v.z;
  fragment.words[1][2] = u.w;
  fragment.words[1][3] = v.w;
}

// Rounds to TF32, halves away from zero. The tensor cores ignore the low 13
// bits, so clearing them is left to them unless the value itself is needed.
__device__ __forceinline__ uint32_t RoundTf32(uint32_t bits) {
  return bits + 0x1000;
}

// Turns `fragment` into its high part and returns its low part.
__device__ __forceinline__ Fragment SplitFragment(Fragment& fragment) {
  Fragment low;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t bits = fragment.words[u][i];
      const uint32_t high = RoundTf32(bits) & 0xFFFFE000;
      const float rest = __uint_as_float(bits) - __uint_as_float(high);
      fragment.words[u][i] = high;
      low.words[u][i] = RoundTf32(__float_as_uint(rest));
    }
  }
  return low;
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_HOPPER_CUH_
