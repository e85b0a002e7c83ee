// Turns a template instance into a ConvInstance. Included by one file for each
// math mode, so that they compile side by side.

#ifndef LIB_WAN_VAE_CUDA_CONV_INSTANCES_CUH_
#define LIB_WAN_VAE_CUDA_CONV_INSTANCES_CUH_

#include "lib/wan_vae/cuda/conv_instances.h"
#include "lib/wan_vae/cuda/conv_kernel.cuh"

namespace firstframe::cuda {

template <typename Config>
const ConvInstance* InstanceOf() {
  static const ConvInstance kInstance = {
      reinterpret_cast<const void*>(&ConvKernel<Config>), Config::kSharedBytes,
      kBlockThreads, Config::kWindowRows, Config::kWindowColumns};
  return &kInstance;
}

}  // namespace firstframe::cuda

#define FF_CONV_INSTANCE(mode, n, blocks, window, resample)                   \
  static_assert(BlocksPerGroup({ConvKernelKind::kHopper, MathMode::mode, n,   \
                                window, Resample::resample}) == blocks);      \
  if (variant == ConvVariant{ConvKernelKind::kHopper, MathMode::mode, n,      \
                             window, Resample::resample}) {                   \
    return InstanceOf<                                                        \
        ConvConfig<MathMode::mode, n, blocks, window, Resample::resample>>(); \
  }

#endif  // LIB_WAN_VAE_CUDA_CONV_INSTANCES_CUH_
