// A model on the CPU with synthetic weights, for tests.

#ifndef LIB_WAN_VAE_CPU_TEST_MODEL_H_
#define LIB_WAN_VAE_CPU_TEST_MODEL_H_

#include <memory>

#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe::testing {

// Relative L2 error that float32 may have. Float64 is the truth; PyTorch's own
// float32 is 1.3e-6 away from it.
inline constexpr double kCpuParity = 3e-6;

// The parameter's synthetic values (synthetic.h).
FloatTensor SyntheticParameter(const ParameterSpec& spec);

// Builds `preset` with all parameters, ready to run on `threads` threads; 0 is
// all. One suffices for the small presets, and waits for no one on a busy
// machine. Failures are the current test's.
std::unique_ptr<CpuWanVae> LoadSyntheticModel(const char* preset,
                                              int threads = 1);

}  // namespace firstframe::testing

#endif  // LIB_WAN_VAE_CPU_TEST_MODEL_H_
