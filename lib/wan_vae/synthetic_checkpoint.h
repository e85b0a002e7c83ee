// Checkpoints of synthetic weights (lib/wan_vae/synthetic.h) on disk.

#ifndef LIB_WAN_VAE_SYNTHETIC_CHECKPOINT_H_
#define LIB_WAN_VAE_SYNTHETIC_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/safetensors/writer.h"
#include "lib/tensor/dtype.h"
#include "lib/wan_vae/config.h"

namespace firstframe {

struct SyntheticOptions {
  int num_shards = 1;
  DType dtype = DType::kF32;  // F32, BF16, F16 or F64
  // Called with the share of bytes written, 0 to 1.
  std::function<void(double)> progress = {};
  // Asked between tensors; true ends the work with Cancelled, and no file.
  std::function<bool()> is_cancelled = {};
};

struct SyntheticResult {
  std::vector<std::string> paths;  // every file written, shards first
  int64_t num_tensors = 0;
  uint64_t size_bytes = 0;  // of the tensors
};

// Writes a Diffusers component folder: config.json and
// diffusion_pytorch_model.safetensors, or several shards and their index. The
// folder is made. With `original_names`, the tensors have the original Wan
// repository's names instead (values stay those of their Diffusers names).
absl::StatusOr<SyntheticResult> WriteSyntheticVae(
    const std::string& folder, const WanVaeConfig& config, bool original_names,
    const SyntheticOptions& options);

// Returns `num_tensors` tensors "layers.I.weight" of about equal size that
// together hold `size_bytes` (rounded down to whole elements): [rows, 128]
// where that divides, else one dimension. InvalidArgument when a count is below
// 1 or there are fewer elements than tensors.
absl::StatusOr<std::vector<TensorSpec>> PlanUniformTensors(int64_t num_tensors,
                                                           uint64_t size_bytes,
                                                           DType dtype);

// Writes `specs` (all of options.dtype) as STEM.safetensors, or shards, into
// `folder`, which is made.
absl::StatusOr<SyntheticResult> WriteSyntheticTensors(
    const std::string& folder, const std::string& stem,
    const std::vector<TensorSpec>& specs, const SyntheticOptions& options);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_SYNTHETIC_CHECKPOINT_H_
