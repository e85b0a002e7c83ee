// Runs a plan on the CPU with plain loops, so that what a plan says can be
// checked without a device. Sums are exact enough (float64); what the plan's
// kernels round (operands to TF32 or BF16, stored frames to BF16) is rounded.

#ifndef LIB_WAN_VAE_CUDA_REFERENCE_RUN_H_
#define LIB_WAN_VAE_CUDA_REFERENCE_RUN_H_

#include <functional>
#include <string>
#include <vector>

#include "lib/wan_vae/cuda/plan.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe::cuda::testing {

// Every parameter of `tree` as synthetic.h makes it.
std::vector<std::vector<float>> SyntheticParameters(const ModuleTree& tree);

// `observe` gets each observed module's index and output. Stops the process
// when a launch reads a frame that nothing wrote. Slow: for models of some
// thousand parameters.
FloatTensor RunPlan(
    const Plan& plan, const std::vector<std::vector<float>>& parameters,
    const FloatTensor& input,
    const std::function<void(int, const FloatTensor&)>& observe = {});

}  // namespace firstframe::cuda::testing

#endif  // LIB_WAN_VAE_CUDA_REFERENCE_RUN_H_
