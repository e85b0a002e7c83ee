#include "lib/flops/text_encoder_cost.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace firstframe {

int64_t VisionTokens(const TextEncoderConfig& config) {
  if (config.patch_size <= 0) return 0;
  const int64_t side = config.image_size / config.patch_size;
  return side * side + 1;
}

absl::StatusOr<ForwardCost> TextEncoderForwardCost(
    const TextEncoderConfig& config, int64_t batch, int64_t tokens) {
  constexpr int64_t kMaxSize = 1 << 24;
  const bool is_vision = config.image_size > 0;
  const std::pair<const char*, int64_t> sizes[] = {
      {"num_layers", config.layers},
      {"hidden size", config.hidden_dim},
      {"attention width", config.attention_dim},
      {"feed-forward width", config.ffn_dim},
      {"batch", batch},
      {is_vision ? "patch_size" : "tokens",
       is_vision ? config.patch_size : tokens},
  };
  for (const auto& [name, value] : sizes) {
    if (value < 1 || value > kMaxSize) {
      return absl::InvalidArgumentError(
          absl::StrCat(config.class_name, ": ", name, " is ", value,
                       ", expected 1 to ", kMaxSize));
    }
  }
  ForwardCost cost;
  if (is_vision) {
    tokens = VisionTokens(config);
    const int64_t patches = SaturatingProduct({batch, tokens - 1});
    const int64_t volume =
        SaturatingProduct({config.patch_size, config.patch_size});
    cost.operators.push_back(
        ConvolutionCost("patch_embedding", OperatorClass::kPatchEmbedding,
                        SaturatingProduct({patches, volume}), patches, volume,
                        3, config.hidden_dim));
  }
  const int64_t rows = SaturatingProduct({batch, tokens});
  const auto add = [&](OperatorCost op, int64_t repeats) {
    op.repeats = repeats;
    op.in_block = true;
    cost.operators.push_back(std::move(op));
  };
  add(LinearCost("layers.qkv", OperatorClass::kSelfAttentionProjection, rows,
                 config.hidden_dim, config.attention_dim),
      3 * config.layers);
  add(AttentionCost("layers.core", OperatorClass::kSelfAttentionCore, batch, 1,
                    tokens, tokens, config.attention_dim),
      config.layers);
  add(LinearCost("layers.out", OperatorClass::kSelfAttentionProjection, rows,
                 config.attention_dim, config.hidden_dim),
      config.layers);
  add(LinearCost("layers.mlp.up", OperatorClass::kMlp, rows, config.hidden_dim,
                 config.ffn_dim),
      (config.is_gated ? 2 : 1) * config.layers);
  add(LinearCost("layers.mlp.down", OperatorClass::kMlp, rows, config.ffn_dim,
                 config.hidden_dim),
      config.layers);
  if (cost.TotalFlops() == kSaturatedFlops) {
    return absl::OutOfRangeError(absl::StrCat(
        config.class_name, ": the cost is more than 2^63 operations"));
  }
  return cost;
}

}  // namespace firstframe
