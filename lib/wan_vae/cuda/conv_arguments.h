// What a convolution kernel of the GPU backend is told.
//
// Activations are frames, [height, width, channels] with the channels padded to
// a pitch. All lie in one arena and are named by slots: a frame begins
// slot * slot stride into it, whatever its size (large ones cover many slots).
// So a convolution in time reads frames wherever they are, without a
// concatenated copy. A slot of -1 is a frame of zeros and costs nothing.

#ifndef LIB_WAN_VAE_CUDA_CONV_ARGUMENTS_H_
#define LIB_WAN_VAE_CUDA_CONV_ARGUMENTS_H_

#include <cstdint>

namespace firstframe::cuda {

// How activations are held and multiplied.
//   kFp32  float32; each product is three TF32 products (high and low parts),
//          summed in chunks, which keeps float32's accuracy
//   kTf32  float32 held, products of values rounded to TF32
//   kBf16  bfloat16 held and multiplied, sums in float32
enum class MathMode : int { kFp32, kTf32, kBf16 };

// Where a 3 x 3 window of an output pixel (y, x) looks.
//   kNone  at (y - 1 + i, x - 1 + j): zeros around the frame
//   kUp    at the same place in the frame enlarged twice, nearest neighbour
//   kDown  at (2y + i, 2x + j): a zero row below, a zero column to the right
enum class Resample : int { kNone, kUp, kDown };

inline constexpr int kMaxFrames = 16;  // of one launch
inline constexpr int kMaxTimeTaps = 3;

// The frames of one size.
struct FramePool {
  void* data = nullptr;  // the arena
  int height = 0;
  int width = 0;
  int channels = 0;
  int pitch = 0;  // elements from one pixel to the next, a multiple of 8
  int slots = 0;  // that the arena counts
  int64_t slot_elements = 0;  // elements from one slot to the next
  bool is_float = true;       // float32, else bfloat16

  constexpr int64_t FrameElements() const {
    return static_cast<int64_t>(height) * width * pitch;
  }
  constexpr int64_t FrameBytes() const {
    return FrameElements() * (is_float ? 4 : 2);
  }
};

struct ConvArguments {
  const void* weights = nullptr;  // packed, see conv_variant.h
  const float* bias = nullptr;    // or null; zero up to whole tiles
  const float* gamma = nullptr;   // with norm_out; zero up to whole tiles
  // Each output is written when not null. `out` is the convolution with bias
  // and residual; `norm_out` is silu(rms_norm(out) * gamma), for which one tile
  // must hold all channels.
  void* out = nullptr;
  void* norm_out = nullptr;
  const void* residual = nullptr;
  int64_t out_slot_elements = 0;
  int64_t norm_slot_elements = 0;
  int64_t residual_slot_elements = 0;
  int out_pitch = 0;
  int norm_pitch = 0;
  int residual_pitch = 0;
  int out_is_float = 1;  // in kBf16: write `out` as float32
  // When positive, `out` is float32 planes: channel c of frame f at
  // out + (c * plane_frames + out_slot) * height * width.
  int plane_frames = 0;
  int height = 0;  // of the output
  int width = 0;
  int out_channels = 0;
  // Channels from here on go to out_slot[1] (a frame of their own).
  int split_channel = 1 << 30;
  int in_chunks = 0;  // of kWordsPerChunk words of input channels
  int time_taps = 1;
  int frames = 0;
  int tiles_y = 0;
  int tiles_x = 0;
  int tiles_n = 0;
  int in_slot[kMaxFrames][kMaxTimeTaps] = {};
  int out_slot[kMaxFrames][2] = {};
  int norm_slot[kMaxFrames] = {};
  int residual_slot[kMaxFrames] = {};
};

// Input channels go through a kernel in chunks of this many 32-bit words: 32
// float32 or 64 bfloat16, one 128-byte row of shared memory.
inline constexpr int kWordsPerChunk = 32;

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_ARGUMENTS_H_
