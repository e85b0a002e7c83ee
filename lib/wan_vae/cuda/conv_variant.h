// Which kernel runs a convolution, how it cuts the output into tiles, and how
// it wants its weights packed. Plain arithmetic, no device needed.
//
// Packed weights are tiles in the order in which a kernel takes them:
//   [tile of output channels][tap in time][chunk of input channels][tap]
// each tile an image of shared memory: tile_channels rows of 128 bytes, which
// hold kWordsPerChunk words of input channels of one output channel, 16-byte
// parts swizzled by the row's number. MathMode::kFp32 has two such images, high
// and low parts. PackedWord below is the map.

#ifndef LIB_WAN_VAE_CUDA_CONV_VARIANT_H_
#define LIB_WAN_VAE_CUDA_CONV_VARIANT_H_

#include <cstdint>

#include "lib/wan_vae/cuda/conv_arguments.h"

#ifdef __CUDACC__
#define FF_HOST_DEVICE __host__ __device__
#else
#define FF_HOST_DEVICE
#endif

namespace firstframe::cuda {

enum class ConvKernelKind : int {
  kHopper,    // wgmma; compute capability 9.0
  kPortable,  // CUDA cores; any device, and the reference in tests
};

struct ConvVariant {
  ConvKernelKind kind = ConvKernelKind::kHopper;
  MathMode mode = MathMode::kFp32;
  int tile_channels = 96;  // 8, 96 or 192 (kPortable: 64)
  int window = 3;          // taps a side: 1 or 3
  Resample resample = Resample::kNone;

  bool operator==(const ConvVariant&) const = default;
};

// Picks the kernel for `out_channels`. `planes`: stored as planes, for which
// the Hopper kernel holds at most 8 channels.
constexpr ConvVariant PickConvVariant(ConvKernelKind kind, MathMode mode,
                                      int out_channels, int window,
                                      Resample resample, bool planes) {
  ConvVariant variant = {kind, mode, 96, window, resample};
  if (kind == ConvKernelKind::kPortable || (planes && out_channels > 8)) {
    variant.kind = ConvKernelKind::kPortable;
    variant.tile_channels = 64;
  } else if (planes) {
    variant.tile_channels = 8;
  } else if (mode != MathMode::kFp32 && resample != Resample::kDown &&
             (out_channels > 96 || window == 1)) {
    // Float32 keeps two sets of sums, for which 192 channels have no registers.
    variant.tile_channels = 192;
  }
  return variant;
}

// Blocks of 64 pixels for each of three groups of warps.
constexpr int BlocksPerGroup(const ConvVariant& v) {
  return v.mode != MathMode::kFp32 && v.tile_channels <= 96 &&
                 v.resample != Resample::kDown
             ? 2
             : 1;
}

inline constexpr int kTileWidth = 16;
constexpr int TileHeight(const ConvVariant& v) {
  return v.kind == ConvKernelKind::kPortable ? 4 : 12 * BlocksPerGroup(v);
}

constexpr int CeilDivide(int64_t a, int64_t b) {
  return static_cast<int>((a + b - 1) / b);
}

constexpr int ElementBytes(MathMode mode) {
  return mode == MathMode::kBf16 ? 2 : 4;
}

// Input channels of one chunk.
constexpr int ChunkChannels(const ConvVariant& v) {
  if (v.kind == ConvKernelKind::kPortable) return 16;
  return v.mode == MathMode::kBf16 ? 2 * kWordsPerChunk : kWordsPerChunk;
}

// Bytes of the tile of one tap, parts included.
constexpr int64_t WeightTileBytes(const ConvVariant& v) {
  if (v.kind == ConvKernelKind::kPortable) {
    return int64_t{4} * ChunkChannels(v) * v.tile_channels;
  }
  return int64_t{4} * kWordsPerChunk * v.tile_channels *
         (v.mode == MathMode::kFp32 ? 2 : 1);
}

constexpr int64_t PackedWeightBytes(const ConvVariant& v, int out_channels,
                                    int in_channels, int time_taps) {
  return WeightTileBytes(v) * CeilDivide(out_channels, v.tile_channels) *
         CeilDivide(in_channels, ChunkChannels(v)) * time_taps * v.window *
         v.window;
}

// Channels that bias and gamma must have, zero past the real ones.
constexpr int PaddedChannels(const ConvVariant& v, int out_channels) {
  return CeilDivide(out_channels, v.tile_channels) * v.tile_channels;
}

// Whether one tile holds all of a pixel's channels, as the fused norm needs.
constexpr bool CanFuseNorm(const ConvVariant& v, int out_channels) {
  return v.kind == ConvKernelKind::kHopper && out_channels <= v.tile_channels &&
         v.tile_channels > 8;
}

// Position `word` of row `row` of a weight tile: which word of the chunk's
// input channels and which channel of the tile's outputs it holds, and where in
// the tile (in words) it lies.
struct PackedWord {
  int in_word;
  int out_channel;
  int offset_words;
};

// The inner order follows the lanes (conv_hopper.cuh): step j of eight words
// holds words 4k + 2u and 4k + 2u + 1 of 16 in columns k and k + 4, u = j % 2.
// The order of rows gives each lane eight neighbouring output channels.
FF_HOST_DEVICE constexpr PackedWord LocatePackedWord(int tile_channels, int row,
                                                     int word) {
  PackedWord located = {};
  const int step = word / 8;
  const int column = word % 8;
  located.in_word = 16 * (step / 2) + 4 * (column % 4) + 2 * (step % 2) +
                    (column < 4 ? 0 : 1);
  located.out_channel = tile_channels < 32 ? row
                                           : row / 32 * 32 + 8 * (row % 8 / 2) +
                                                 2 * (row % 32 / 8) + row % 2;
  located.offset_words = row * 32 + (((word / 4) ^ (row % 8)) * 4) + word % 4;
  return located;
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_VARIANT_H_
