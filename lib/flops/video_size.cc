#include "lib/flops/video_size.h"

namespace firstframe {

LatentFactors LatentFactorsOf(const TransformerConfig& config) {
  switch (config.family) {
    case TransformerFamily::kWan:
      return {.temporal = 4, .spatial = config.in_channels == 48 ? 16 : 8};
    case TransformerFamily::kLtxVideo:
      return {.temporal = 8, .spatial = 32};
    case TransformerFamily::kMochi:
      return {.temporal = 6, .spatial = 8};
    case TransformerFamily::kFlux:
      // Latents of 8 x 8 pixels, packed 2 x 2 into one position.
      return {.temporal = 1, .spatial = 16};
    case TransformerFamily::kHunyuanVideo:
    case TransformerFamily::kCogVideoX:
    case TransformerFamily::kUnknown:
      return {};
  }
  return {};
}

void SetLatentSize(const VideoSize& video, const LatentFactors& factors,
                   ForwardShape& shape) {
  shape.latent_frames =
      video.frames > 0 ? (video.frames - 1) / factors.temporal + 1 : 0;
  shape.latent_height = video.height / factors.spatial;
  shape.latent_width = video.width / factors.spatial;
}

}  // namespace firstframe
