// Kernels whose cost is moving data: norms, softmax, layouts, packing.

#include <cuda_bf16.h>

#include "lib/cuda/cuda_status.h"
#include "lib/wan_vae/cuda/kernels.h"
#include "lib/wan_vae/cuda/vector.cuh"

namespace firstframe::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

cudaStream_t ToStream(StreamHandle stream) {
  return static_cast<cudaStream_t>(stream);
}

__device__ __forceinline__ float WarpSum(float v) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) v += __shfl_xor_sync(0xFFFFFFFF, v, i);
  return v;
}
__device__ __forceinline__ float WarpMax(float v) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) {
    v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFF, v, i));
  }
  return v;
}

// One warp a pixel; its lanes hold up to kVectors x 8 channels each.
template <typename T, int kVectors>
__global__ void __launch_bounds__(kThreads)
    NormKernel(FramePool pool, NormArguments a) {
  const int lane = threadIdx.x % 32;
  const int64_t pixels = int64_t{pool.height} * pool.width;
  const int64_t pixel = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (pixel >= pixels) return;
  const int frame = blockIdx.y;
  T* const data = static_cast<T*>(pool.data);
  const T* from =
      data + a.from_slot[frame] * pool.slot_elements + pixel * pool.pitch;
  T* to = data + a.to_slot[frame] * pool.slot_elements + pixel * pool.pitch;
  float v[kVectors][8];
  float square_sum = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int channel = 8 * (lane + 32 * i);
    if (channel >= pool.pitch) continue;
    LoadEight(from + channel, v[i]);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      if (channel + c < pool.channels) square_sum += v[i][c] * v[i][c];
    }
  }
  const float scale = a.apply_norm
                          ? sqrtf(static_cast<float>(pool.channels)) /
                                fmaxf(sqrtf(WarpSum(square_sum)), 1e-12f)
                          : 1.0f;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int channel = 8 * (lane + 32 * i);
    if (channel >= pool.pitch) continue;
    float gamma[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    if (a.apply_norm) LoadEight(a.gamma + channel, gamma);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      v[i][c] *= scale * gamma[c];
      if (a.apply_silu) v[i][c] = Silu(v[i][c]);
    }
    StoreEight(to + channel, v[i]);
  }
}

template <typename T>
absl::Status LaunchNormOf(const FramePool& pool, const NormArguments& a,
                          StreamHandle stream) {
  const int64_t pixels = int64_t{pool.height} * pool.width;
  const dim3 grid(CeilDivide(pixels, kWarps), a.frames);
  const int vectors = CeilDivide(pool.pitch, 256);
  const auto launch = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, ToStream(stream)>>>(pool, a);
  };
  if (vectors <= 1) {
    launch(NormKernel<T, 1>);
  } else if (vectors <= 2) {
    launch(NormKernel<T, 2>);
  } else if (vectors <= 4) {
    launch(NormKernel<T, 4>);
  } else if (vectors <= 8) {
    launch(NormKernel<T, 8>);
  } else {
    return absl::UnimplementedError("norm of more than 2048 channels");
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    AddKernel(FramePool pool, NormArguments a) {
  const int64_t at = 8 * (int64_t{blockIdx.x} * kThreads + threadIdx.x);
  if (at >= pool.FrameElements()) return;
  const int frame = blockIdx.y;
  T* const data = static_cast<T*>(pool.data);
  T* const to = data + a.to_slot[frame] * pool.slot_elements + at;
  float sum[8];
  float term[8];
  LoadEight(to, sum);
  LoadEight(data + a.from_slot[frame] * pool.slot_elements + at, term);
#pragma unroll
  for (int i = 0; i < 8; ++i) sum[i] += term[i];
  StoreEight(to, sum);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    ObserveKernel(FramePool pool, ObserveArguments a) {
  const int64_t plane = int64_t{a.height} * a.width;
  const int64_t pixel = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= plane) return;
  const int channel = blockIdx.y;
  const int frame = a.first_frame + blockIdx.z;
  const int y = static_cast<int>(pixel / a.width) / a.enlarge;
  const int x = static_cast<int>(pixel % a.width) / a.enlarge;
  const int channels = pool.channels * a.folds;
  const int slot = a.slot[blockIdx.z * a.folds + channel / pool.channels];
  T value = static_cast<T>(0.0f);
  if (y < pool.height && x < pool.width) {
    value = static_cast<const T*>(
        pool.data)[slot * pool.slot_elements +
                   (int64_t{y} * pool.width + x) * pool.pitch +
                   channel % pool.channels];
  }
  const int64_t at =
      (int64_t{frame / a.frames} * channels + channel) * a.frames +
      frame % a.frames;
  static_cast<T*>(a.planes)[at * plane + pixel] = value;
}

// One block a row, three passes over it; rows stay in the L2 cache.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    SoftmaxKernel(const float* from, T* to, int columns, int pitch,
                  float scale) {
  __shared__ float shared[kWarps];
  const float* row = from + int64_t{blockIdx.x} * pitch;
  T* out = to + int64_t{blockIdx.x} * pitch;
  const auto reduce = [&](float v, auto combine, auto warp_combine) {
    v = warp_combine(v);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    float total = shared[0];
    for (int i = 1; i < kWarps; ++i) total = combine(total, shared[i]);
    __syncthreads();
    return total;
  };
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += kThreads) {
    largest = fmaxf(largest, row[i]);
  }
  largest = reduce(
      largest, [](float a, float b) { return fmaxf(a, b); }, WarpMax);
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += kThreads) {
    sum += __expf((row[i] - largest) * scale);
  }
  sum = reduce(
      sum, [](float a, float b) { return a + b; }, WarpSum);
  const float inverse = 1.0f / sum;
  for (int i = threadIdx.x; i < pitch; i += kThreads) {
    const float p =
        i < columns ? __expf((row[i] - largest) * scale) * inverse : 0.0f;
    out[i] = static_cast<T>(p);
  }
}

// 32 x 32 transposes between planes (pixels inner) and frames (channels inner).
template <typename T, typename P, bool kToPlanes>
__global__ void TransposeKernel(FramePool pool, PlaneArguments a) {
  __shared__ float tile[32][33];
  const int64_t pixels = int64_t{pool.height} * pool.width;
  const int frame = blockIdx.z;
  const int64_t first_pixel = int64_t{blockIdx.x} * 32;
  const int first = blockIdx.y * 32;
  T* slot = static_cast<T*>(pool.data) + a.slot[frame] * pool.slot_elements;
  P* planes = static_cast<P*>(a.planes) + (a.first_frame + frame) * pixels;
  const int64_t plane_stride = a.plane_frames * pixels;
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const int64_t pixel = first_pixel + (kToPlanes ? i : threadIdx.x);
    const int channel = first + (kToPlanes ? threadIdx.x : i);
    float v = 0;
    if (pixel < pixels && channel < a.channels) {
      v = kToPlanes
              ? static_cast<float>(
                    slot[pixel * pool.pitch + a.first_channel + channel])
              : static_cast<float>(planes[channel * plane_stride + pixel]);
    }
    tile[i][threadIdx.x] = v;
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += blockDim.y) {
    const int64_t pixel = first_pixel + (kToPlanes ? threadIdx.x : i);
    const int channel = first + (kToPlanes ? i : threadIdx.x);
    if (pixel >= pixels) continue;
    const float v = tile[threadIdx.x][i];
    if (kToPlanes) {
      if (channel < a.channels) {
        planes[channel * plane_stride + pixel] = static_cast<P>(v);
      }
    } else if (channel < pool.pitch) {  // past the channels: zero
      slot[pixel * pool.pitch + channel] = static_cast<T>(v);
    }
  }
}

template <bool kToPlanes>
absl::Status LaunchTranspose(const FramePool& pool, const PlaneArguments& a,
                             StreamHandle stream) {
  const int64_t pixels = int64_t{pool.height} * pool.width;
  const dim3 grid(CeilDivide(pixels, 32),
                  CeilDivide(kToPlanes ? a.channels : pool.pitch, 32),
                  a.frames);
  const dim3 block(32, 8);
  const auto launch = [&](auto kernel) {
    kernel<<<grid, block, 0, ToStream(stream)>>>(pool, a);
  };
  if (pool.is_float) {
    launch(TransposeKernel<float, float, kToPlanes>);
  } else if (a.planes_are_float) {
    launch(TransposeKernel<__nv_bfloat16, float, kToPlanes>);
  } else {
    launch(TransposeKernel<__nv_bfloat16, __nv_bfloat16, kToPlanes>);
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

__device__ __forceinline__ float ReadSource(const PackSource& s, int n, int k,
                                            int tap) {
  if (n >= s.n || k >= s.k) return 0;
  const int64_t at = n * s.n_stride + k * s.k_stride + tap * s.tap_stride;
  return s.is_float ? static_cast<const float*>(s.from)[at]
                    : static_cast<float>(
                          static_cast<const __nv_bfloat16*>(s.from)[at]);
}

__device__ __forceinline__ uint32_t RoundToTf32(float v) {
  return (__float_as_uint(v) + 0x1000) & 0xFFFFE000;
}

// One block a tile of weights; see conv_variant.h for the order.
__global__ void PackKernel(ConvVariant variant, PackSource source, int chunks,
                           char* to) {
  const int taps_in_space = source.taps / source.time_taps;
  int tile = blockIdx.x;
  const int tap = tile % taps_in_space;
  tile /= taps_in_space;
  const int chunk = tile % chunks;
  tile /= chunks;
  const int time_tap = tile % source.time_taps;
  const int first_n = tile / source.time_taps * variant.tile_channels;
  const int source_tap = time_tap * taps_in_space + tap;
  const bool is_portable = variant.kind == ConvKernelKind::kPortable;
  const int n_words = variant.tile_channels * kWordsPerChunk;
  const int64_t tile_bytes =
      is_portable
          ? int64_t{4} * 16 * variant.tile_channels
          : int64_t{4} * n_words * (variant.mode == MathMode::kFp32 ? 2 : 1);
  uint32_t* words = reinterpret_cast<uint32_t*>(to + blockIdx.x * tile_bytes);
  if (is_portable) {  // [16 input channels][tile_channels]
    for (int i = threadIdx.x; i < 16 * variant.tile_channels; i += blockDim.x) {
      words[i] = __float_as_uint(
          ReadSource(source, first_n + i % variant.tile_channels,
                     chunk * 16 + i / variant.tile_channels, source_tap));
    }
    return;
  }
  for (int i = threadIdx.x; i < n_words; i += blockDim.x) {
    const PackedWord at = LocatePackedWord(
        variant.tile_channels, i / kWordsPerChunk, i % kWordsPerChunk);
    const int n = first_n + at.out_channel;
    if (variant.mode == MathMode::kBf16) {
      const int k = 2 * (chunk * kWordsPerChunk + at.in_word);
      const __nv_bfloat162 pair =
          __floats2bfloat162_rn(ReadSource(source, n, k, source_tap),
                                ReadSource(source, n, k + 1, source_tap));
      words[at.offset_words] = *reinterpret_cast<const uint32_t*>(&pair);
      continue;
    }
    const float v =
        ReadSource(source, n, chunk * kWordsPerChunk + at.in_word, source_tap);
    const uint32_t high = RoundToTf32(v);
    words[at.offset_words] = high;
    if (variant.mode == MathMode::kFp32) {
      words[n_words + at.offset_words] = RoundToTf32(v - __uint_as_float(high));
    }
  }
}

}  // namespace

absl::Status LaunchNorm(const FramePool& pool, const NormArguments& arguments,
                        StreamHandle stream) {
  return pool.is_float ? LaunchNormOf<float>(pool, arguments, stream)
                       : LaunchNormOf<__nv_bfloat16>(pool, arguments, stream);
}

absl::Status LaunchAdd(const FramePool& pool, const NormArguments& arguments,
                       StreamHandle stream) {
  const dim3 grid(CeilDivide(pool.FrameElements(), 8 * kThreads),
                  arguments.frames);
  if (pool.is_float) {
    AddKernel<float><<<grid, kThreads, 0, ToStream(stream)>>>(pool, arguments);
  } else {
    AddKernel<__nv_bfloat16>
        <<<grid, kThreads, 0, ToStream(stream)>>>(pool, arguments);
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

absl::Status LaunchObserve(const FramePool& pool,
                           const ObserveArguments& arguments,
                           StreamHandle stream) {
  const dim3 grid(
      CeilDivide(int64_t{arguments.height} * arguments.width, kThreads),
      pool.channels * arguments.folds, arguments.count);
  if (pool.is_float) {
    ObserveKernel<float>
        <<<grid, kThreads, 0, ToStream(stream)>>>(pool, arguments);
  } else {
    ObserveKernel<__nv_bfloat16>
        <<<grid, kThreads, 0, ToStream(stream)>>>(pool, arguments);
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

absl::Status LaunchSoftmax(MathMode mode, const float* from, void* to,
                           int64_t rows, int columns, int pitch, float scale,
                           StreamHandle stream) {
  const auto launch = [&](auto* out) {
    SoftmaxKernel<<<static_cast<unsigned>(rows), kThreads, 0,
                    ToStream(stream)>>>(from, out, columns, pitch, scale);
  };
  if (mode == MathMode::kBf16) {
    launch(static_cast<__nv_bfloat16*>(to));
  } else {
    launch(static_cast<float*>(to));
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

absl::Status LaunchFromPlanes(const FramePool& pool,
                              const PlaneArguments& arguments,
                              StreamHandle stream) {
  return LaunchTranspose<false>(pool, arguments, stream);
}

absl::Status LaunchToPlanes(const FramePool& pool,
                            const PlaneArguments& arguments,
                            StreamHandle stream) {
  return LaunchTranspose<true>(pool, arguments, stream);
}

absl::Status LaunchPack(const ConvVariant& variant, const PackSource& source,
                        void* to, StreamHandle stream) {
  const int chunks = CeilDivide(source.k, ChunkChannels(variant));
  const int tiles =
      CeilDivide(source.n, variant.tile_channels) * chunks * source.taps;
  PackKernel<<<tiles, kThreads, 0, ToStream(stream)>>>(variant, source, chunks,
                                                       static_cast<char*>(to));
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

}  // namespace firstframe::cuda
