// Launches of every kernel of the GPU backend. All run asynchronously on the
// given stream; a launch that fails is Internal (or Unavailable when the binary
// has no code for the device).

#ifndef LIB_WAN_VAE_CUDA_KERNELS_H_
#define LIB_WAN_VAE_CUDA_KERNELS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/wan_vae/cuda/conv_arguments.h"
#include "lib/wan_vae/cuda/conv_variant.h"

namespace firstframe::cuda {

// Runs the convolution. tiles_*, in_chunks and out-side sizes of `arguments`
// are filled in here from `variant`, `input` and `output_*`; the rest is the
// caller's.
absl::Status LaunchConv(const ConvVariant& variant, const FramePool& input,
                        ConvArguments arguments, int multiprocessors,
                        StreamHandle stream);

// A matrix to pack as weights: element (n, k) of tap p at
// from + n * n_stride + k * k_stride + p * tap_stride, float32 or bfloat16.
struct PackSource {
  const void* from = nullptr;
  bool is_float = true;
  int64_t n_stride = 0;
  int64_t k_stride = 0;
  int64_t tap_stride = 0;
  int n = 0;     // output channels
  int k = 0;     // input channels
  int taps = 1;  // in time, height and width, time outermost
  int time_taps = 1;
};

// Packs into `to`, PackedWeightBytes long.
absl::Status LaunchPack(const ConvVariant& variant, const PackSource& source,
                        void* to, StreamHandle stream);

// out = x / max(|x|, 1e-12) * sqrt(channels) * gamma over the channels of each
// pixel, then SiLU if asked. gamma has FramePool::pitch entries or more, zero
// past the channels. From slots to slots of `pool`, which may be the same.
struct NormArguments {
  const float* gamma = nullptr;
  bool apply_norm = true;  // false: SiLU alone
  bool apply_silu = true;
  int frames = 0;
  int from_slot[kMaxFrames] = {};
  int to_slot[kMaxFrames] = {};
};
absl::Status LaunchNorm(const FramePool& pool, const NormArguments& arguments,
                        StreamHandle stream);

// Adds slot from_slot[i] to slot to_slot[i], frame by frame.
absl::Status LaunchAdd(const FramePool& pool, const NormArguments& arguments,
                       StreamHandle stream);

// Rows of scores [rows, pitch] in float32 to probabilities of the first
// `columns` times `scale`, zero past them; `to` is bfloat16 when the mode is,
// else float32 and may be `from`.
absl::Status LaunchSoftmax(MathMode mode, const float* from, void* to,
                           int64_t rows, int columns, int pitch, float scale,
                           StreamHandle stream);

// Between float32 or bfloat16 planes [channels, plane_frames, height, width]
// and the slots of `pool`: frame i of `frames` is plane frame first_frame + i.
struct PlaneArguments {
  void* planes = nullptr;
  bool planes_are_float = true;
  int64_t plane_frames = 0;
  int first_frame = 0;
  int first_channel = 0;  // of the pool; channels to copy follow
  int channels = 0;
  int frames = 0;
  int slot[kMaxFrames] = {};
};
absl::Status LaunchFromPlanes(const FramePool& pool,
                              const PlaneArguments& arguments,
                              StreamHandle stream);
absl::Status LaunchToPlanes(const FramePool& pool,
                            const PlaneArguments& arguments,
                            StreamHandle stream);

// Writes frames as an observer wants them: planes [height, width], of which
// plane ((f / frames) * channels + c) * frames + f % frames is channel c of
// frame f. Pixels are repeated `enlarge` times both ways; what lies outside the
// frame is zero. Channels past the pool's come from the `folds` - 1 slots that
// follow.
struct ObserveArguments {
  void* planes = nullptr;  // of the pool's type
  int height = 0;
  int width = 0;
  int enlarge = 1;
  int folds = 1;
  int frames = 1;       // of one batch item
  int first_frame = 0;  // number of the first of these frames
  int count = 0;        // of frames here; `count` * `folds` slots
  int slot[kMaxFrames * 2] = {};
};
absl::Status LaunchObserve(const FramePool& pool,
                           const ObserveArguments& arguments,
                           StreamHandle stream);

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_KERNELS_H_
