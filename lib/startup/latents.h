// The latents that a startup run decodes.

#ifndef LIB_STARTUP_LATENTS_H_
#define LIB_STARTUP_LATENTS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// Returns the latent shape [1, z_dim, 1 + (frames - 1) / temporal, height /
// spatial, width / spatial] that decodes to this video. InvalidArgument when
// frames is not 1 + k * temporal or a side is not a multiple of spatial.
absl::StatusOr<Shape> LatentShapeOfVideo(const WanVaeConfig& config,
                                         int64_t frames, int64_t height,
                                         int64_t width);

// Parses "1x16x3x60x104", also with commas. InvalidArgument unless it is five
// positive sizes with `config`'s z_dim second.
absl::StatusOr<Shape> ParseLatentShape(const WanVaeConfig& config,
                                       absl::string_view text);

// Returns values with mean 0 and variance 1 (uniform, lib/wan_vae/synthetic.h):
// the synthetic tensor "latent" for seed 0, "latent.SEED" for others. The same
// bits everywhere.
FloatTensor SeededLatents(const Shape& shape, uint64_t seed);

// Reads tensor "latent" (or the only tensor) of a .safetensors file, of type
// F32, F16, BF16 or F64; its shape must be five sizes with `config`'s z_dim
// second.
absl::StatusOr<FloatTensor> ReadLatents(const WanVaeConfig& config,
                                        const std::string& path);

}  // namespace firstframe

#endif  // LIB_STARTUP_LATENTS_H_
