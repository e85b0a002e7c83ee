// The exact cost of the Wan VAE (2.1 and 2.2), as Diffusers' AutoencoderKLWan
// runs it: chunk by chunk in time with a feature cache, so that no frame is
// computed twice, and tile by tile when tiling is on, so that the overlap is.
//
// Equal to torch 2.11's FlopCounterMode on that class (testdata/flops). A
// causal convolution over a chunk of t frames yields t frames: the cached
// frames stand in for padding. The first chunk is one frame and skips every
// temporal resampling convolution.

#ifndef LIB_FLOPS_WAN_VAE_COST_H_
#define LIB_FLOPS_WAN_VAE_COST_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/flops/operator_cost.h"

namespace firstframe {

// AutoencoderKLWan's config.json; the defaults are Wan 2.1's.
struct WanVaeCostConfig {
  int64_t base_dim = 96;
  int64_t decoder_base_dim = 96;
  int64_t z_dim = 16;
  std::vector<int64_t> dim_mult = {1, 2, 4, 4};
  int64_t num_res_blocks = 2;
  std::vector<bool> temporal_downsample = {false, true, true};
  int64_t in_channels = 3;   // of the encoder, after patching
  int64_t out_channels = 3;  // of the decoder, before unpatching
  int64_t patch_size = 1;
  bool is_residual = false;  // Wan 2.2
};

// Tiles in pixels, as enable_tiling() takes them; no tiling when `tile_pixels`
// is 0.
struct VaeTiling {
  int64_t tile_pixels = 0;    // tile_sample_min_height and _width
  int64_t stride_pixels = 0;  // tile_sample_stride_height and _width
};

// Prices decode() of a latent [batch, z_dim, frames, height, width].
// InvalidArgument for sizes that are not positive, OutOfRange past int64_t.
absl::StatusOr<ForwardCost> WanVaeDecodeCost(
    const WanVaeCostConfig& config, int64_t batch, int64_t latent_frames,
    int64_t latent_height, int64_t latent_width, const VaeTiling& tiling = {});

// Prices encode() of a video [batch, 3, frames, height, width] in pixels;
// frames past the last whole chunk of four are ignored, as in the original.
absl::StatusOr<ForwardCost> WanVaeEncodeCost(const WanVaeCostConfig& config,
                                             int64_t batch, int64_t frames,
                                             int64_t height, int64_t width,
                                             const VaeTiling& tiling = {});

// Pixels a latent position covers: 8 for Wan 2.1, 16 for Wan 2.2.
int64_t WanVaeSpatialFactor(const WanVaeCostConfig& config);

}  // namespace firstframe

#endif  // LIB_FLOPS_WAN_VAE_COST_H_
