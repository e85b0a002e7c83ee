// Convolution in plain loops, its sums in double.
//
// For layers narrower than oneDNN's vectors of 16 channels: there it costs
// nothing, needs no code generated, and halves the rounding error that RMS
// norms of very few channels amplify. Also what the oneDNN path is tested
// against.

#ifndef LIB_WAN_VAE_DIRECT_CONV_H_
#define LIB_WAN_VAE_DIRECT_CONV_H_

#include <array>
#include <compare>
#include <cstdint>

#include "lib/wan_vae/module_tree.h"

namespace firstframe {

// What a convolution runs on: channels-last [batch, frames, height, width,
// channels] input. Zero frames in front and zero rows and columns around it are
// not stored.
struct ConvShape {
  int64_t batch = 0;
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t zero_frames = 0;  // before the first
  int64_t zero_after = 0;   // rows below and columns right, beyond the padding
  bool accumulate = false;  // output += result instead of output = result

  auto operator<=>(const ConvShape&) const = default;
};

// Returns [batch, frames, height, width, channels] of the output.
std::array<int64_t, 5> ConvOutputShape(const ConvLayer& layer,
                                       const ConvShape& shape);

// Returns the floating-point operations of one run, two for a multiplication
// with its addition. Time taps on zero frames are not counted (they are
// skipped); taps on zero rows and columns are, as torch's FlopCounterMode does.
int64_t ConvFlops(const ConvLayer& layer, const ConvShape& shape);

// `weight` is [out, in, kt, kh, kw], `bias` [out].
void DirectConv(const ConvLayer& layer, const ConvShape& shape,
                const float* weight, const float* bias, const float* input,
                float* output);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_DIRECT_CONV_H_
