#include "lib/wan_vae/direct_conv.h"

#include <algorithm>

#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// The taps of one axis that fall inside [0, extent) for output position `out`.
struct Taps {
  Taps(int64_t out, int64_t stride, int64_t zeros, int64_t kernel,
       int64_t extent)
      : first_input(out * stride - zeros),
        begin(std::max<int64_t>(0, -first_input)),
        end(std::min(kernel, extent - first_input)) {}
  int64_t first_input;  // of tap 0, may be negative
  int64_t begin, end;
};

// One output position, all channels.
class Window {
 public:
  Window(const ConvLayer& layer, const ConvShape& shape, int64_t batch,
         const std::array<int64_t, 3>& at)
      : layer_(layer),
        shape_(shape),
        batch_(batch),
        time_(at[0], layer.stride[0], shape.zero_frames, layer.kernel[0],
              shape.frames),
        row_(at[1], layer.stride[1], layer.padding[0], layer.kernel[1],
             shape.height),
        column_(at[2], layer.stride[2], layer.padding[1], layer.kernel[2],
                shape.width) {}

  // Returns the sum over every tap and input channel.
  double Sum(const float* weight, const float* input) const {
    const int64_t in = layer_.in_channels;
    const auto& k = layer_.kernel;
    const int64_t taps = k[0] * k[1] * k[2];
    double sum = 0;
    for (int64_t t = time_.begin; t < time_.end; ++t) {
      for (int64_t y = row_.begin; y < row_.end; ++y) {
        for (int64_t x = column_.begin; x < column_.end; ++x) {
          const float* from = input + InputOffset(t, y, x);
          const float* w = weight + (t * k[1] + y) * k[2] + x;
          for (int64_t c = 0; c < in; ++c) {
            sum += static_cast<double>(from[c]) * w[c * taps];
          }
        }
      }
    }
    return sum;
  }

 private:
  int64_t InputOffset(int64_t t, int64_t y, int64_t x) const {
    const int64_t frame = batch_ * shape_.frames + time_.first_input + t;
    const int64_t row = frame * shape_.height + row_.first_input + y;
    return (row * shape_.width + column_.first_input + x) * layer_.in_channels;
  }

  const ConvLayer& layer_;
  const ConvShape& shape_;
  const int64_t batch_;
  const Taps time_, row_, column_;
};

}  // namespace

std::array<int64_t, 5> ConvOutputShape(const ConvLayer& layer,
                                       const ConvShape& shape) {
  const auto out = [&](int axis, int64_t padded) {
    return (padded - layer.kernel[axis]) / layer.stride[axis] + 1;
  };
  return {shape.batch, out(0, shape.frames + shape.zero_frames),
          out(1, shape.height + 2 * layer.padding[0] + shape.zero_after),
          out(2, shape.width + 2 * layer.padding[1] + shape.zero_after),
          layer.out_channels};
}

int64_t ConvFlops(const ConvLayer& layer, const ConvShape& shape) {
  const auto out = ConvOutputShape(layer, shape);
  int64_t time_taps = 0;
  for (int64_t t = 0; t < out[1]; ++t) {
    for (int64_t k = 0; k < layer.kernel[0]; ++k) {
      time_taps += t * layer.stride[0] + k >= shape.zero_frames;
    }
  }
  return 2 * shape.batch * time_taps * out[2] * out[3] * layer.kernel[1] *
         layer.kernel[2] * layer.in_channels * layer.out_channels;
}

void DirectConv(const ConvLayer& layer, const ConvShape& shape,
                const float* weight, const float* bias, const float* input,
                float* output) {
  const auto out = ConvOutputShape(layer, shape);
  const int64_t fan_in =
      layer.in_channels * layer.kernel[0] * layer.kernel[1] * layer.kernel[2];
  const int64_t grain = (64 << 10) / (fan_in * layer.out_channels) + 1;
  ParallelFor(
      out[0] * out[1] * out[2] * out[3], grain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t x = i % out[3], y = i / out[3] % out[2];
          const int64_t t = i / out[3] / out[2] % out[1];
          const int64_t batch = i / out[3] / out[2] / out[1];
          const Window window(layer, shape, batch, {t, y, x});
          for (int64_t c = 0; c < layer.out_channels; ++c) {
            float& to = output[i * layer.out_channels + c];
            const double start = shape.accumulate ? to : 0.0;
            to = static_cast<float>(start + bias[c] +
                                    window.Sum(weight + c * fan_in, input));
          }
        }
      });
}

}  // namespace firstframe
