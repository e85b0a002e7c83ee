// From a video in pixels to the latent a transformer runs on.

#ifndef LIB_FLOPS_VIDEO_SIZE_H_
#define LIB_FLOPS_VIDEO_SIZE_H_

#include <cstdint>

#include "lib/flops/transformer_config.h"

namespace firstframe {

struct VideoSize {
  int64_t frames = 81;
  int64_t height = 480;  // pixels
  int64_t width = 832;
};

// Frames and pixels that a latent position stands for, by the VAE that the
// family ships with. Wan models of 48 channels use the Wan 2.2 VAE.
struct LatentFactors {
  int64_t temporal = 4;
  int64_t spatial = 8;
};
LatentFactors LatentFactorsOf(const TransformerConfig& config);

// Fills the latent sizes of a shape: the first frame is a latent of its own,
// later ones come `temporal` to a latent; sizes round down, as in the
// pipelines.
void SetLatentSize(const VideoSize& video, const LatentFactors& factors,
                   ForwardShape& shape);

}  // namespace firstframe

#endif  // LIB_FLOPS_VIDEO_SIZE_H_
