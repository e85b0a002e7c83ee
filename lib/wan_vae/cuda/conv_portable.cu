// The convolution on CUDA cores: for devices without wgmma, and the reference
// that the Hopper kernel is tested against. Products and sums are float32 in
// every mode; in kBf16 activations are read and stored as bfloat16.

#include <cuda_bf16.h>

#include "lib/cuda/cuda_status.h"
#include "lib/wan_vae/cuda/conv_portable.h"
#include "lib/wan_vae/cuda/vector.cuh"

namespace firstframe::cuda {
namespace {

constexpr int kTilePixels = 64;  // 4 rows of 16
constexpr int kTileChannels = 64;
constexpr int kChunk = 16;
constexpr int kThreads = 256;  // each 4 pixels by 4 channels

struct Shape {
  int in_height;
  int in_width;
  int in_channels;
  int in_pitch;
  int64_t in_slot_elements;
  int window;
  Resample resample;
};

// Reads one channel of what tap (i, j) of output pixel (y, x) looks at.
template <typename T>
__device__ float ReadInput(const T* frame, const Shape& s, int y, int x, int i,
                           int j, int channel) {
  int height = s.in_height;
  int width = s.in_width;
  if (s.resample == Resample::kDown) {
    y = 2 * y + i;
    x = 2 * x + j;
  } else {
    y += i - s.window / 2;
    x += j - s.window / 2;
  }
  if (s.resample == Resample::kUp) {
    height *= 2;
    width *= 2;
  }
  if (y < 0 || x < 0 || y >= height || x >= width || channel >= s.in_channels) {
    return 0;
  }
  if (s.resample == Resample::kUp) {
    y /= 2;
    x /= 2;
  }
  return static_cast<float>(
      frame[(static_cast<int64_t>(y) * s.in_width + x) * s.in_pitch + channel]);
}

template <typename T>
__device__ void StoreValue(const ConvArguments& a, float v, int frame, int y,
                           int x, int channel) {
  const int64_t pixel = static_cast<int64_t>(y) * a.width + x;
  if (a.bias != nullptr) v += a.bias[channel];
  if (a.plane_frames > 0) {
    const int64_t plane =
        static_cast<int64_t>(channel) * a.plane_frames + a.out_slot[frame][0];
    static_cast<float*>(a.out)[plane * a.height * a.width + pixel] = v;
    return;
  }
  if (a.residual != nullptr) {
    v += static_cast<float>(static_cast<const T*>(
        a.residual)[a.residual_slot[frame] * a.residual_slot_elements +
                    pixel * a.residual_pitch + channel]);
  }
  const int side = channel >= a.split_channel ? 1 : 0;
  const int64_t at = a.out_slot[frame][side] * a.out_slot_elements +
                     pixel * a.out_pitch + channel - side * a.split_channel;
  if (a.out_is_float) {
    static_cast<float*>(a.out)[at] = v;
  } else {
    static_cast<T*>(a.out)[at] = static_cast<T>(v);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    PortableConvKernel(const T* input, Shape s, ConvArguments a) {
  __shared__ float pixels[kChunk][kTilePixels + 4];
  __shared__ float weights[kChunk][kTileChannels];
  int tile = blockIdx.x;
  const int tile_n = tile % a.tiles_n;
  tile /= a.tiles_n;
  const int tile_x = tile % a.tiles_x;
  tile /= a.tiles_x;
  const int tile_y = tile % a.tiles_y;
  const int frame = tile / a.tiles_y;
  const int first_pixel = threadIdx.x / 16 * 4;
  const int first_channel = threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  const int taps = s.window * s.window;
  for (int t = 0; t < a.time_taps; ++t) {
    const int slot = a.in_slot[frame][t];
    if (slot < 0) continue;
    const T* from = input + slot * s.in_slot_elements;
    for (int step = 0; step < a.in_chunks * taps; ++step) {
      const int chunk = step / taps;
      const int tap = step % taps;
      const float* tile_weights =
          static_cast<const float*>(a.weights) +
          (static_cast<int64_t>((tile_n * a.time_taps + t) * a.in_chunks +
                                chunk) *
               taps +
           tap) *
              (kChunk * kTileChannels);
      for (int i = threadIdx.x; i < kChunk * kTileChannels; i += kThreads) {
        weights[i / kTileChannels][i % kTileChannels] = tile_weights[i];
        const int pixel = i / kChunk;
        pixels[i % kChunk][pixel] = ReadInput(
            from, s, tile_y * 4 + pixel / 16, tile_x * 16 + pixel % 16,
            tap / s.window, tap % s.window, chunk * kChunk + i % kChunk);
      }
      __syncthreads();
#pragma unroll
      for (int c = 0; c < kChunk; ++c) {
#pragma unroll
        for (int p = 0; p < 4; ++p) {
#pragma unroll
          for (int n = 0; n < 4; ++n) {
            sums[p][n] +=
                pixels[c][first_pixel + p] * weights[c][first_channel + n];
          }
        }
      }
      __syncthreads();
    }
  }
  for (int p = 0; p < 4; ++p) {
    const int pixel = first_pixel + p;
    const int y = tile_y * 4 + pixel / 16;
    const int x = tile_x * 16 + pixel % 16;
    if (y >= a.height || x >= a.width) continue;
    for (int n = 0; n < 4; ++n) {
      const int channel = tile_n * kTileChannels + first_channel + n;
      if (channel < a.out_channels) {
        StoreValue<T>(a, sums[p][n], frame, y, x, channel);
      }
    }
  }
}

}  // namespace

absl::Status LaunchPortableConv(const ConvVariant& variant,
                                const FramePool& input,
                                const ConvArguments& arguments,
                                StreamHandle stream) {
  static_assert(kChunk * kTileChannels == kChunk * kTilePixels);
  const Shape shape = {input.height,    input.width,         input.channels,
                       input.pitch,     input.slot_elements, variant.window,
                       variant.resample};
  const int tiles = arguments.frames * arguments.tiles_y * arguments.tiles_x *
                    arguments.tiles_n;
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  if (input.is_float) {
    PortableConvKernel<<<tiles, kThreads, 0, cuda_stream>>>(
        static_cast<const float*>(input.data), shape, arguments);
  } else {
    PortableConvKernel<<<tiles, kThreads, 0, cuda_stream>>>(
        static_cast<const __nv_bfloat16*>(input.data), shape, arguments);
  }
  FF_CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return absl::OkStatus();
}

}  // namespace firstframe::cuda
