// Instances of the convolution kernel for MathMode::kBf16.

#include "lib/wan_vae/cuda/conv_instances.cuh"

namespace firstframe::cuda {

const ConvInstance* FindBf16Instance(const ConvVariant& variant) {
#define FF_CONV(n, blocks, window, resample) \
  FF_CONV_INSTANCE(kBf16, n, blocks, window, resample)
  FF_CONV(96, 2, 3, kNone)
  FF_CONV(96, 2, 3, kUp)
  FF_CONV(96, 1, 3, kDown)
  FF_CONV(192, 1, 3, kNone)
  FF_CONV(192, 1, 3, kUp)
  FF_CONV(192, 1, 1, kNone)
  FF_CONV(8, 2, 3, kNone)
#undef FF_CONV
  return nullptr;
}

}  // namespace firstframe::cuda
