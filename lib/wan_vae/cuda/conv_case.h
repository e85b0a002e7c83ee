// One convolution with made-up inputs, for tests and timings on a device.

#ifndef LIB_WAN_VAE_CUDA_CONV_CASE_H_
#define LIB_WAN_VAE_CUDA_CONV_CASE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/stream.h"
#include "lib/wan_vae/cuda/conv_variant.h"

namespace firstframe::cuda::testing {

struct ConvCase {
  const char* name;
  int height, width;  // of the output
  int in_channels, out_channels;
  int time_taps = 3;
  int window = 3;
  Resample resample = Resample::kNone;
  bool planes = false;
  bool residual = false;
  bool norm = false;  // also silu(norm(out)), fused where the kernel can
  int frames = 1;
  bool zero_tap = false;  // the first frame's first tap sees no frame
  bool split = false;     // the second half of the channels goes elsewhere
};

// Inputs on host and device, and either kernel's outputs. In kBf16 inputs are
// rounded to bfloat16 first, so that both see the same.
class ConvBench {
 public:
  // `stream` must outlive the object.
  static absl::StatusOr<ConvBench> Make(const Stream& stream, const ConvCase& c,
                                        MathMode mode, int multiprocessors);

  // Packs the weights and fills the outputs with NaN.
  absl::Status Prepare(ConvKernelKind kind);
  absl::Status Launch();

  // Zero between the channels and the pitch.
  absl::StatusOr<std::vector<float>> Out() const { return Download(0); }
  absl::StatusOr<std::vector<float>> NormOut() const { return Download(1); }

  // Relative error (L2) of some 400 elements of `out` against a float64 sum.
  double SampledError(const std::vector<float>& out) const;

  // As PyTorch counts them: zero frames too.
  double Flops() const;

 private:
  ConvBench(const Stream& stream, const ConvCase& c, MathMode mode,
            int multiprocessors)
      : stream_(stream),
        case_(c),
        mode_(mode),
        multiprocessors_(multiprocessors) {}

  bool is_bf16() const { return mode_ == MathMode::kBf16; }
  int Taps() const { return case_.time_taps * case_.window * case_.window; }
  int Sides() const { return case_.split ? 2 : 1; }
  int OutFrames() const { return case_.frames * Sides(); }
  int FrameChannels() const { return case_.out_channels / Sides(); }
  double Expected(int frame, int y, int x, int channel) const;
  absl::StatusOr<std::vector<float>> Download(int part) const;

  const Stream& stream_;
  ConvCase case_;
  MathMode mode_;
  int multiprocessors_;
  ConvVariant variant_;
  FramePool input_;
  std::vector<float> host_input_, host_weights_, host_bias_, host_residual_;
  DeviceBuffer input_data_, raw_weights_, weights_, bias_, gamma_, residual_;
  DeviceBuffer out_;  // the convolution, and behind it its norm
  size_t out_bytes_ = 0;
  int out_pitch_ = 0;
  int64_t out_elements_ = 0;
};

}  // namespace firstframe::cuda::testing

#endif  // LIB_WAN_VAE_CUDA_CONV_CASE_H_
