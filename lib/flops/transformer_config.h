// The sizes of a video (or image) diffusion transformer that decide its cost.

#ifndef LIB_FLOPS_TRANSFORMER_CONFIG_H_
#define LIB_FLOPS_TRANSFORMER_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class TransformerFamily {
  kWan,  // Wan 2.1 and 2.2: T2V, I2V, TI2V
  kHunyuanVideo,
  kCogVideoX,
  kLtxVideo,
  kMochi,
  kFlux,
  kUnknown,  // only its parameters are known: linear layers alone are priced
};

// "wan", "hunyuan_video", ..., "unknown".
absl::string_view TransformerFamilyName(TransformerFamily family);

// Fields that a family does not have stay 0. Names follow Diffusers'
// config.json where one exists.
struct TransformerConfig {
  TransformerFamily family = TransformerFamily::kUnknown;
  std::string class_name;  // "WanTransformer3DModel"

  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t kv_heads = 0;        // grouped-query attention; 0: as many as heads
  int64_t layers = 0;          // dual-stream blocks in MMDiT families
  int64_t single_layers = 0;   // HunyuanVideo, Flux
  int64_t refiner_layers = 0;  // HunyuanVideo
  int64_t ffn_dim = 0;
  int64_t context_ffn_dim = 0;  // Mochi

  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t patch_t = 1;
  int64_t patch_h = 1;
  int64_t patch_w = 1;

  int64_t text_dim = 0;        // width of the text encoder's output
  int64_t context_dim = 0;     // Mochi's text stream
  int64_t pooled_dim = 0;      // HunyuanVideo, Flux
  int64_t time_dim = 0;        // sinusoid width (freq_dim)
  int64_t time_embed_dim = 0;  // CogVideoX's narrower time embedding
  bool guidance = false;       // an embedded guidance scale

  // Wan I2V 2.1: CLIP image embedding width, and width of the extra K and V.
  int64_t image_dim = 0;
  int64_t added_kv_dim = 0;

  int64_t default_text_tokens = 0;
  int64_t default_image_tokens = 0;

  // kUnknown: the number of parameters, and nothing else.
  int64_t params = 0;

  int64_t hidden_dim() const { return heads * head_dim; }
  // Width of K and V. The core costs its query heads whatever this is: keys are
  // repeated up to them.
  int64_t kv_dim() const {
    return (kv_heads > 0 ? kv_heads : heads) * head_dim;
  }
};

// Checks that every size the family needs is positive and below the limits that
// keep a forward's cost within int64_t. InvalidArgument names the field.
absl::Status ValidateTransformerConfig(const TransformerConfig& config);

// What one forward runs on.
struct ForwardShape {
  int64_t batch = 1;  // classifier-free guidance in one batch counts as 2
  // Latent frames, height and width, before patching.
  int64_t latent_frames = 1;
  int64_t latent_height = 0;
  int64_t latent_width = 0;
  int64_t text_tokens = 0;   // rows of text a sample, padding included
  int64_t image_tokens = 0;  // Wan I2V 2.1: 257 a conditioning image
  // Timesteps a sample: 1, or one a latent token (Wan 2.2 TI2V).
  int64_t timestep_tokens = 1;
};

// Latent tokens a sample after patching; 0 when a side is smaller than a patch.
int64_t LatentTokens(const TransformerConfig& config,
                     const ForwardShape& shape);

}  // namespace firstframe

#endif  // LIB_FLOPS_TRANSFORMER_CONFIG_H_
