// What a plan's kernels round, for runs on the CPU that are compared with them.

#ifndef LIB_WAN_VAE_CUDA_REFERENCE_ROUNDING_H_
#define LIB_WAN_VAE_CUDA_REFERENCE_ROUNDING_H_

#include "lib/wan_vae/cuda/conv_variant.h"

namespace firstframe::cuda::testing {

// Halves to even, as conversions on the device round.
float RoundToBf16(float value);

// Returns what the kernel of `variant` multiplies where its input or weight is
// `value`.
float RoundOperand(const ConvVariant& variant, float value);

}  // namespace firstframe::cuda::testing

#endif  // LIB_WAN_VAE_CUDA_REFERENCE_ROUNDING_H_
