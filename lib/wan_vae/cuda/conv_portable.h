// Launch of the convolution on CUDA cores.

#ifndef LIB_WAN_VAE_CUDA_CONV_PORTABLE_H_
#define LIB_WAN_VAE_CUDA_CONV_PORTABLE_H_

#include "absl/status/status.h"
#include "lib/cuda/runtime.h"
#include "lib/wan_vae/cuda/conv_variant.h"

namespace firstframe::cuda {

// `arguments` complete, tiles included. No fused norm.
absl::Status LaunchPortableConv(const ConvVariant& variant,
                                const FramePool& input,
                                const ConvArguments& arguments,
                                StreamHandle stream);

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_PORTABLE_H_
