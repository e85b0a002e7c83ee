// The element-wise kernels of the CPU backend. All use every compute thread.
//
// Activations are channels-last: [batch, frames, height, width, channels],
// float32, dense. A "row" is the channels of one position.

#ifndef LIB_WAN_VAE_CPU_KERNELS_H_
#define LIB_WAN_VAE_CPU_KERNELS_H_

#include <cstdint>

namespace firstframe {

// y = x / max(|x|, 1e-12) * sqrt(channels) * gamma for each row, then y *
// sigmoid(y) when `silu`. In place when input == output.
void NormalizeRows(const float* input, int64_t rows, int64_t channels,
                   const float* gamma, bool silu, float* output,
                   int64_t groups = 1, int64_t group_stride = 0);

// x * sigmoid(x), in place.
void Silu(float* values, int64_t count);

// sum += values.
void AddTo(float* sum, const float* values, int64_t count);

// Softmax of each row of `scale` * scores, in place.
void SoftmaxRows(float* scores, int64_t rows, int64_t columns, float scale);

// Copies rows of `channels` into `groups` of channels / groups, `group_stride`
// apart.
void SplitRows(const float* input, int64_t rows, int64_t channels,
               float* output, int64_t groups, int64_t group_stride);

// Copies `count` blocks of `block` floats between strided places.
void CopyBlocks(const float* from, int64_t from_stride, float* to,
                int64_t to_stride, int64_t count, int64_t block);

// Doubles height and width by repetition. `input` is [images, height, width,
// fold * channels]; with fold 2 its channel halves are two frames, one after
// the other. `output` is [images * fold, 2 * height, 2 * width, channels].
void UpsampleNearest(const float* input, int64_t images, int64_t height,
                     int64_t width, int64_t channels, int64_t fold,
                     float* output);

// [outer, positions, channels] to [outer, channels, positions] and back.
// `plane_stride` is the distance between channels in the channels-first side
// (positions when it is dense), `outer_stride` that between outer items there.
void ToChannelsFirst(const float* input, int64_t outer, int64_t positions,
                     int64_t channels, int64_t outer_stride,
                     int64_t plane_stride, float* output);
void ToChannelsLast(const float* input, int64_t outer, int64_t positions,
                    int64_t channels, int64_t outer_stride,
                    int64_t plane_stride, float* output);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_KERNELS_H_
