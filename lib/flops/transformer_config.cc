#include "lib/flops/transformer_config.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

// Far above any published model; their products stay below 2^63 for forwards of
// up to 2^24 tokens, beyond which a count saturates and is reported.
constexpr int64_t kMaxWidth = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1 << 16;

struct Field {
  const char* name;
  int64_t value;
  int64_t max;
};

std::vector<Field> NeededFields(const TransformerConfig& c) {
  std::vector<Field> fields = {
      {"num_attention_heads", c.heads, kMaxWidth},
      {"attention_head_dim", c.head_dim, kMaxWidth},
      {"num_layers", c.layers, kMaxLayers},
      {"ffn_dim", c.ffn_dim, kMaxWidth},
      {"in_channels", c.in_channels, kMaxWidth},
      {"out_channels", c.out_channels, kMaxWidth},
      {"patch_size[0]", c.patch_t, kMaxWidth},
      {"patch_size[1]", c.patch_h, kMaxWidth},
      {"patch_size[2]", c.patch_w, kMaxWidth},
      {"text_dim", c.text_dim, kMaxWidth},
      {"freq_dim", c.time_dim, kMaxWidth},
  };
  switch (c.family) {
    case TransformerFamily::kHunyuanVideo:
      fields.push_back({"num_refiner_layers", c.refiner_layers, kMaxLayers});
      [[fallthrough]];
    case TransformerFamily::kFlux:
      fields.push_back({"num_single_layers", c.single_layers, kMaxLayers});
      fields.push_back({"pooled_projection_dim", c.pooled_dim, kMaxWidth});
      break;
    case TransformerFamily::kCogVideoX:
      fields.push_back({"time_embed_dim", c.time_embed_dim, kMaxWidth});
      break;
    case TransformerFamily::kMochi:
      fields.push_back({"pooled_projection_dim", c.context_dim, kMaxWidth});
      fields.push_back({"context_ffn_dim", c.context_ffn_dim, kMaxWidth});
      break;
    default:
      break;
  }
  return fields;
}

}  // namespace

absl::string_view TransformerFamilyName(TransformerFamily family) {
  switch (family) {
    case TransformerFamily::kWan:
      return "wan";
    case TransformerFamily::kHunyuanVideo:
      return "hunyuan_video";
    case TransformerFamily::kCogVideoX:
      return "cogvideox";
    case TransformerFamily::kLtxVideo:
      return "ltx_video";
    case TransformerFamily::kMochi:
      return "mochi";
    case TransformerFamily::kFlux:
      return "flux";
    case TransformerFamily::kUnknown:
      return "unknown";
  }
  return "unknown";
}

absl::Status ValidateTransformerConfig(const TransformerConfig& config) {
  if (config.family == TransformerFamily::kUnknown) {
    if (config.params > 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "unknown architecture without a parameter count");
  }
  for (const Field& field : NeededFields(config)) {
    if (field.value <= 0 || field.value > field.max) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.class_name, ": ", field.name, " is ", field.value,
                       ", expected 1 to ", field.max));
    }
  }
  for (const Field& field :
       {Field{"num_key_value_heads", config.kv_heads, kMaxWidth},
        Field{"image_dim", config.image_dim, kMaxWidth},
        Field{"added_kv_proj_dim", config.added_kv_dim, kMaxWidth}}) {
    if (field.value < 0 || field.value > field.max) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.class_name, ": ", field.name, " is ", field.value,
                       ", expected 0 to ", field.max));
    }
  }
  return absl::OkStatus();
}

int64_t LatentTokens(const TransformerConfig& config,
                     const ForwardShape& shape) {
  return (shape.latent_frames / config.patch_t) *
         (shape.latent_height / config.patch_h) *
         (shape.latent_width / config.patch_w);
}

}  // namespace firstframe
