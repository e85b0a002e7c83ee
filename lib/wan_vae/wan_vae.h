// A Wan video VAE, whatever runs it.
//
// Bringing one up takes separate steps, so that each can be timed:
//   BuildCpuWanVae / BuildCudaWanVae   construct: the graph, no weights
//   AllocateParameters                 device transfer: storage where it runs
//   (read a checkpoint: lib/wan_vae/load_weights.h)
//   AssignParameter for each           weight assignment: convert to float32,
//   copy Finalize                           layouts and kernels made ready
// then Decode and Encode, any number of times.

#ifndef LIB_WAN_VAE_WAN_VAE_H_
#define LIB_WAN_VAE_WAN_VAE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/observer.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// A view of `tensor`, which must outlive it.
TensorView ViewOf(const FloatTensor& tensor);

// Spatial tiles, in samples, as AutoencoderKLWan.enable_tiling() takes them:
// a run larger than the minimum is cut into tiles of that size, `stride` apart,
// whose overlaps are blended linearly.
struct TilingOptions {
  int64_t min_height = 256;
  int64_t min_width = 256;
  int64_t stride_height = 192;
  int64_t stride_width = 192;
};

struct RunOptions {
  std::optional<TilingOptions> tiling;
  ActivationObserver* observer = nullptr;
  // Called between layers with the share of the run that is done, 0 to 1, never
  // falling.
  std::function<void(double)> progress;
  // Asked between layers; true ends the run with Cancelled.
  std::function<bool()> is_cancelled;
};

struct EncodeResult {
  FloatTensor mean;    // [batch, z_dim, frames, height, width]
  FloatTensor logvar;  // same shape, clamped to [-30, 20] as diffusers does
};

// Thread-compatible: one call at a time on one object.
class WanVae {
 public:
  virtual ~WanVae() = default;
  WanVae(const WanVae&) = delete;
  WanVae& operator=(const WanVae&) = delete;

  const WanVaeConfig& config() const { return config_; }
  const ModuleTree& tree() const { return tree_; }

  // Reserves storage for every parameter.
  virtual absl::Status AllocateParameters() = 0;

  // Converts `value` (F64, F32, F16 or BF16; the shape of
  // tree().parameters[index]) to float32 and stores it. May be called for
  // different indices from different threads at once.
  virtual absl::Status AssignParameter(int index, const TensorView& value) = 0;

  // Host memory that holds parameters as they were read.
  struct HostBlock {
    absl::Span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  // keeps it
  };
  // Offers parameters before they are assigned: values[i], in one of `blocks`,
  // is of tree().parameters[i]. A model may take some as they lie there,
  // keeping the block's owner while it needs it, and says which; the others are
  // to be assigned. None are taken unless a model overrides this.
  virtual absl::StatusOr<std::vector<bool>> TakeParameters(
      absl::Span<const TensorView> values, absl::Span<const HostBlock> blocks);

  // Call once, when every parameter is assigned or taken.
  virtual absl::Status Finalize() = 0;

  // Parameters as stored now, and buffers and caches at their largest so far.
  virtual int64_t ParameterBytes() const = 0;
  virtual int64_t WorkspaceBytes() const = 0;

  // Decodes latents [batch, z_dim, frames, height, width], float32, into
  // samples [batch, out_channels, 1 + TemporalFactor() * (frames - 1),
  // SpatialFactor() * height, SpatialFactor() * width] in [-1, 1]. The latents
  // are those the model was trained on: see DenormalizeLatents. Errors:
  // InvalidArgument (type or shape), FailedPrecondition (not finalized),
  // Cancelled, ResourceExhausted, and what the observer returns.
  absl::StatusOr<FloatTensor> Decode(const TensorView& latents,
                                     const RunOptions& options);

  // Encodes samples [batch, in_channels, 1 + 4k, height, width], float32, with
  // height and width multiples of SpatialFactor(). Errors as Decode.
  absl::StatusOr<EncodeResult> Encode(const TensorView& samples,
                                      const RunOptions& options);

 protected:
  explicit WanVae(const WanVaeConfig& config)
      : config_(config), tree_(BuildModuleTree(config)) {}

  // What a run of one tile needs beside its input.
  struct ChunkContext {
    ActivationObserver* observer = nullptr;  // null: nothing is observed
    // To be called between layers with the share of this tile that is done, 0
    // to 1; an error (Cancelled) ends the run. Never empty.
    std::function<absl::Status(double done)> checkpoint = {};
    // Tiled decoding runs post_quant_conv (and tiled encoding quant_conv) on
    // each chunk instead of once on all frames.
    bool quant_conv_per_chunk = false;
  };

  // Runs one tile, chunk by chunk from empty caches. Shapes are validated. The
  // result of DecodeTile is not clamped; that of EncodeTile is quant_conv's
  // [batch, 2 * z_dim, ...].
  virtual absl::StatusOr<FloatTensor> DecodeTile(
      const FloatTensor& latents, const ChunkContext& context) = 0;
  virtual absl::StatusOr<FloatTensor> EncodeTile(
      const FloatTensor& samples, const ChunkContext& context) = 0;
  virtual bool is_finalized() const = 0;

 private:
  absl::Status CheckFinalized() const;

  const WanVaeConfig config_;
  const ModuleTree tree_;
};

// latents * latents_std + latents_mean per channel, in place: what a pipeline
// does to a denoiser's output before decoding. `latents` is [batch, z_dim,
// ...].
void DenormalizeLatents(const WanVaeConfig& config, FloatTensor& latents);

// The inverse: (latents - latents_mean) / latents_std.
void NormalizeLatents(const WanVaeConfig& config, FloatTensor& latents);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_WAN_VAE_H_
