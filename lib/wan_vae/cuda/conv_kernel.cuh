// The convolution kernel itself: conv_hopper.cuh says how it works.

#ifndef LIB_WAN_VAE_CUDA_CONV_KERNEL_CUH_
#define LIB_WAN_VAE_CUDA_CONV_KERNEL_CUH_

#include "lib/wan_vae/cuda/conv_epilogue.cuh"
#include "lib/wan_vae/cuda/conv_hopper.cuh"

namespace firstframe::cuda {

// One multiplying thread's place in its tile.
struct ThreadPlace {
  int lane;
  int warp;   // of the warpgroup, 0 to 3
  int group;  // warpgroup

  // The first of the thread's two pixels in a row of 16; the second is 8 to the
  // right. Neighbouring rows of the matrix are four pixels apart, so that the
  // eight lanes of one shared-memory access touch all banks once.
  __device__ __forceinline__ int X() const {
    const int row = lane >> 2;
    return (row >> 1) | ((row & 1) << 2);
  }
  template <typename Config>
  __device__ __forceinline__ int Y(int block) const {
    return 4 * (group * Config::kBlocksPerGroup + block) + warp;
  }
};

// Multiplies half a tap, 16 words of each pixel, into `sums`.
template <typename Config>
__device__ __forceinline__ void MultiplyHalf(
    float (&sums)[Config::kBlocksPerGroup][Config::kChannels / 2],
    Fragment (&high)[Config::kBlocksPerGroup],
    Fragment (&low)[Config::kBlocksPerGroup], uint32_t weights, int half,
    int accumulate) {
  using Instruction = Wgmma<Config::kChannels>;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const uint64_t b = SwizzledDescriptor(weights + 32 * (2 * half + u));
#pragma unroll
    for (int block = 0; block < Config::kBlocksPerGroup; ++block) {
      if constexpr (Config::kMode == MathMode::kBf16) {
        Instruction::Bf16(sums[block], high[block].words[u], b, accumulate);
      } else if constexpr (Config::kMode == MathMode::kTf32) {
        Instruction::Tf32(sums[block], high[block].words[u], b, accumulate);
      } else {
        const uint64_t b_low = SwizzledDescriptor(weights + Config::kPartBytes +
                                                  32 * (2 * half + u));
        Instruction::Tf32(sums[block], low[block].words[u], b, accumulate);
        Instruction::Tf32(sums[block], high[block].words[u], b_low, 1);
        Instruction::Tf32(sums[block], high[block].words[u], b, 1);
      }
    }
    accumulate = 1;
  }
}

template <typename Config>
__device__ __forceinline__ void LoadFragments(
    uint32_t window, const ThreadPlace& place, int tap, int half,
    Fragment (&high)[Config::kBlocksPerGroup],
    Fragment (&low)[Config::kBlocksPerGroup]) {
#pragma unroll
  for (int block = 0; block < Config::kBlocksPerGroup; ++block) {
    LoadFragment<Config>(window, place.Y<Config>(block), place.X(), tap, half,
                         place.lane, high[block]);
    if constexpr (Config::kMode == MathMode::kFp32) {
      low[block] = SplitFragment(high[block]);
    } else if constexpr (Config::kMode == MathMode::kTf32) {
#pragma unroll
      for (int u = 0; u < 2; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          high[block].words[u][i] = RoundTf32(high[block].words[u][i]);
        }
      }
    }
  }
}

// The multiplying side of one block: sums of every tile, and their stores.
template <typename Config>
class TileMultiplier {
 public:
  __device__ __forceinline__ TileMultiplier(const ConvArguments& a,
                                            uint32_t shared_base)
      : a_(a), shared_(shared_base) {
    place_.lane = threadIdx.x & 31;
    place_.warp = (threadIdx.x >> 5) & 3;
    place_.group = threadIdx.x >> 7;
  }

  __device__ __forceinline__ void Run(int tiles) {
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const TilePosition at = LocateTile(a_, tile);
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
        for (int i = 0; i < kSums; ++i) sums_[block][i] = 0;
      }
      accumulate_ = 0;
      for (int t = 0; t < a_.time_taps; ++t) {
        if (a_.in_slot[at.frame][t] < 0) continue;
        for (int chunk = 0; chunk < a_.in_chunks; ++chunk) MultiplyWindow();
      }
      WgmmaWait<0>();
      Hold();
      ReleaseWeights();
      Store(at);
    }
  }

 private:
  static constexpr bool kSplit = Config::kMode == MathMode::kFp32;
  static constexpr int kBlocks = Config::kBlocksPerGroup;
  static constexpr int kSums = Config::kChannels / 2;
  static constexpr int kTapsPerMove = Config::kTaps < 3 ? 1 : 3;

  // The sums that the tensor cores add to.
  __device__ __forceinline__ float (&Running())[kBlocks][kSums] {
    if constexpr (kSplit) {
      return partial_;
    } else {
      return sums_;
    }
  }

  // Keeps the compiler from moving uses of the sums above a wait.
  __device__ __forceinline__ void Hold() {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        asm volatile("" : "+f"(Running()[block][i])::"memory");
      }
    }
  }

  __device__ __forceinline__ void ReleaseWeights() {
    if (held_stage_ < 0) return;
    if (place_.lane == 0) {
      BarrierArrive(shared_.weights_empty + 8 * held_stage_);
    }
    held_stage_ = -1;
  }

  __device__ __forceinline__ void MultiplyWindow() {
    BarrierWait(shared_.window_full + 8 * window_.stage, window_.parity);
    const uint32_t window =
        shared_.windows + window_.stage * Config::kWindowStride;
    LoadFragments<Config>(window, place_, 0, 0, high_[0], low_[0]);
#pragma unroll
    for (int step = 0; step < 2 * Config::kTaps; ++step) {
      const int tap = step / 2;
      const int half = step % 2;
      if (half == 0) {
        BarrierWait(shared_.weights_full + 8 * weight_.stage, weight_.parity);
      }
      const bool starts = kSplit && step % (2 * kTapsPerMove) == 0;
      WgmmaFence();
      MultiplyHalf<Config>(
          Running(), high_[step & 1], low_[step & 1],
          shared_.weights + weight_.stage * Config::kWeightBytes, half,
          starts ? 0 : (kSplit ? 1 : accumulate_));
      WgmmaCommit();
      accumulate_ = 1;
      WgmmaWait<1>();
      if (half == 0) {
        ReleaseWeights();  // those of the tap before are read
      } else {
        held_stage_ = weight_.stage;
        weight_.Advance();
      }
      if (step + 1 < 2 * Config::kTaps) {
        LoadFragments<Config>(window, place_, (step + 1) / 2, (step + 1) % 2,
                              high_[(step + 1) & 1], low_[(step + 1) & 1]);
      }
      if (kSplit && half == 1 && (tap + 1) % kTapsPerMove == 0) MoveSums();
    }
    __syncwarp();
    if (place_.lane == 0)
      BarrierArrive(shared_.window_empty + 8 * window_.stage);
    window_.Advance();
  }

  __device__ __forceinline__ void MoveSums() {
    WgmmaWait<0>();
    Hold();
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int i = 0; i < kSums; ++i) sums_[block][i] += partial_[block][i];
    }
  }

  __device__ __forceinline__ void Store(const TilePosition& at) {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const int y = at.y * Config::kTileRows + place_.Y<Config>(block);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int x = at.x * kTileColumns + place_.X() + 8 * half;
        const bool inside = y < a_.height && x < a_.width;
        const int64_t pixel = static_cast<int64_t>(y) * a_.width + x;
        if constexpr (Config::kChannels == 8) {
          StorePlanes<Config>(a_, sums_[block], half, inside, pixel, at.frame,
                              place_.lane & 3);
        } else {
          StorePixel<Config>(a_, sums_[block], half, inside, pixel, at.frame,
                             at.n * Config::kChannels, place_.lane & 3);
        }
      }
    }
  }

  const ConvArguments& a_;
  const SharedLayout<Config> shared_;
  ThreadPlace place_;
  RingPosition<Config::kWindowStages> window_;
  RingPosition<Config::kWeightStages> weight_;
  int held_stage_ = -1;
  int accumulate_ = 0;
  float sums_[kBlocks][kSums];
  float partial_[kSplit ? kBlocks : 1][kSplit ? kSums : 1];
  Fragment high_[2][kBlocks];
  Fragment low_[2][kBlocks];  // kFp32 only
};

template <typename Config>
__global__ void __launch_bounds__(kBlockThreads, 1)
    ConvKernel(const __grid_constant__ CUtensorMap input,
               const __grid_constant__ ConvArguments a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const uint32_t base = SharedAddress(memory);
  const SharedLayout<Config> shared(base);
  if (threadIdx.x == 0) {
    for (int i = 0; i < Config::kWindowStages; ++i) {
      BarrierInit(shared.window_full + 8 * i, 1);
      BarrierInit(shared.window_empty + 8 * i, kMultiplyWarps);
    }
    for (int i = 0; i < Config::kWeightStages; ++i) {
      BarrierInit(shared.weights_full + 8 * i, 1);
      BarrierInit(shared.weights_empty + 8 * i, kMultiplyWarps);
    }
    BarrierInitFence();
  }
  __syncthreads();
  const int tiles = a.frames * a.tiles_y * a.tiles_x * a.tiles_n;
  if (threadIdx.x >= 128 * kMultiplyGroups) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 32;\n");
    if (threadIdx.x == 128 * kMultiplyGroups) {
      CopyTiles<Config>(&input, a, shared, tiles);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;\n");
    TileMultiplier<Config>(a, base).Run(tiles);
  }
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_KERNEL_CUH_
