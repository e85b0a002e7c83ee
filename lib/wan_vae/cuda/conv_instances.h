// The compiled convolution kernels, found by variant.

#ifndef LIB_WAN_VAE_CUDA_CONV_INSTANCES_H_
#define LIB_WAN_VAE_CUDA_CONV_INSTANCES_H_

#include "lib/wan_vae/cuda/conv_variant.h"

namespace firstframe::cuda {

struct ConvInstance {
  const void* kernel;  // for cudaLaunchKernel
  int shared_bytes;
  int block_threads;
  int window_rows;  // of the copied box
  int window_columns;
};

// Null when the variant is not compiled.
const ConvInstance* FindFp32Instance(const ConvVariant& variant);
const ConvInstance* FindTf32Instance(const ConvVariant& variant);
const ConvInstance* FindBf16Instance(const ConvVariant& variant);

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_CONV_INSTANCES_H_
