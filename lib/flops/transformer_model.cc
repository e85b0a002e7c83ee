#include "lib/flops/transformer_model.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/flops/transformer_builder.h"

namespace firstframe {
namespace {

using Class = OperatorClass;

class Builder : public TransformerBuilder {
 public:
  using TransformerBuilder::TransformerBuilder;

  ForwardCost Build();

 private:
  void BuildWan();
  void WanImageConditioning(int64_t layers);
  void BuildHunyuanVideo();
  void HunyuanTextRefiner();
  void JointBlocks();
  void BuildCogVideoX();
  void BuildLtxVideo();
  void BuildMochi();
  void MochiBlocks();
  void BuildFlux();
  void BuildUnknown();
};

// Text and image rows enter each block's cross attention; their K and V depend
// on no adapter upstream.
void Builder::BuildWan() {
  const int64_t layers = config_.layers;
  const int64_t time_rows = SaturatingProduct({batch_, timesteps_});
  PatchConvolution();
  EmbedMlp("time_embedder", time_rows, config_.time_dim, dim(), dim());
  Embed("time_proj", Class::kModulation, time_rows, dim(), 6 * dim(), false);
  EmbedMlp("text_embedder", text_rows(), config_.text_dim, dim(), dim());

  Projections("blocks.attn1", Class::kSelfAttentionProjection, layers,
              latent_rows(), dim(), /*leaf_repeats=*/1);
  Core("blocks.attn1.core", Class::kSelfAttentionCore, layers, tokens_,
       tokens_);
  Output("blocks.attn1", Class::kSelfAttentionProjection, layers, latent_rows(),
         dim());
  const Class cross = Class::kCrossAttentionProjection;
  Block(LinearCost("blocks.attn2.to_q", cross, latent_rows(), dim(), dim()),
        layers)
      .takes_adapter = true;
  ContextProjections("blocks.attn2", text_rows());
  Core("blocks.attn2.core", Class::kCrossAttentionCore, layers, tokens_, text_);
  if (config_.image_dim > 0 && image_ > 0) WanImageConditioning(layers);
  Output("blocks.attn2", cross, layers, latent_rows(), dim());
  Mlp("blocks.ffn", layers, latent_rows(), dim(), config_.ffn_dim, false);
  Head();
}

void Builder::WanImageConditioning(int64_t layers) {
  const int64_t rows = SaturatingProduct({batch_, image_});
  EmbedMlp("image_embedder", rows, config_.image_dim, config_.image_dim, dim());
  for (const char* part :
       {"blocks.attn2.add_k_proj", "blocks.attn2.add_v_proj"}) {
    OperatorCost& op = Block(LinearCost(part, Class::kCrossAttentionProjection,
                                        rows, config_.added_kv_dim, dim()),
                             layers);
    op.leaf_repeats_lora = layers;
  }
  Core("blocks.attn2.image_core", Class::kCrossAttentionCore, layers, tokens_,
       image_);
}

void Builder::HunyuanTextRefiner() {
  const std::string name = "context_embedder";
  EmbedMlp(name + ".timestep_embedder", batch_, config_.time_dim, dim(), dim());
  EmbedMlp(name + ".text_embedder", batch_, config_.text_dim, dim(), dim());
  Embed(name + ".proj_in", Class::kConditionEmbedding, text_rows(),
        config_.text_dim, dim(), true);
  const int64_t layers = config_.refiner_layers;
  const auto embed = [&](const char* part, int64_t rows, int64_t k, int64_t n,
                         int64_t count) {
    OperatorCost& op = Add(LinearCost(absl::StrCat(name, part),
                                      Class::kConditionEmbedding, rows, k, n));
    op.repeats = SaturatingProduct({layers, count});
    op.leaf_repeats_lora = op.repeats;
  };
  embed(".refiner.qkvo", text_rows(), dim(), dim(), 4);
  embed(".refiner.ff.up", text_rows(), dim(), config_.ffn_dim, 1);
  embed(".refiner.ff.down", text_rows(), config_.ffn_dim, dim(), 1);
  embed(".refiner.norm_out", batch_, dim(), 2 * dim(), 1);
  OperatorCost& core =
      Add(AttentionCost(name + ".refiner.core", Class::kConditionEmbedding,
                        batch_, config_.heads, text_, text_, config_.head_dim));
  core.repeats = layers;
  core.leaf_repeats_lora = layers;
}

// MMDiT: dual-stream blocks with their own weights for text, then single-stream
// blocks with attention and MLP in parallel, all over text and latents
// together.
void Builder::JointBlocks() {
  const int64_t joint = joint_tokens();
  const int64_t dual = config_.layers;
  const int64_t single = config_.single_layers;
  const Class projection = Class::kSelfAttentionProjection;
  Modulation("transformer_blocks.norm1", dual, dim(), 6 * dim(), true);
  Modulation("transformer_blocks.norm1_context", dual, dim(), 6 * dim(), true);
  Projections("transformer_blocks.attn", projection, dual, latent_rows(), dim(),
              /*leaf_repeats=*/1);
  Projections("transformer_blocks.attn.added", projection, dual, text_rows(),
              dim(), /*leaf_repeats=*/1);
  Core("transformer_blocks.attn.core", Class::kSelfAttentionCore, dual, joint,
       joint);
  Output("transformer_blocks.attn", projection, dual, latent_rows(), dim());
  Output("transformer_blocks.attn.added", projection, dual, text_rows(), dim());
  Mlp("transformer_blocks.ff", dual, latent_rows(), dim(), config_.ffn_dim,
      false);
  Mlp("transformer_blocks.ff_context", dual, text_rows(), dim(),
      config_.ffn_dim, false);

  Modulation("single_transformer_blocks.norm", single, dim(), 3 * dim(), true);
  Projections("single_transformer_blocks.attn", projection, single,
              joint_rows(), dim(), /*leaf_repeats=*/0);
  Core("single_transformer_blocks.attn.core", Class::kSelfAttentionCore, single,
       joint, joint);
  Block(LinearCost("single_transformer_blocks.proj_mlp", Class::kMlp,
                   joint_rows(), dim(), config_.ffn_dim),
        single);
  Block(LinearCost("single_transformer_blocks.proj_out", Class::kMlp,
                   joint_rows(), dim() + config_.ffn_dim, dim()),
        single);
}

void Builder::BuildHunyuanVideo() {
  PatchConvolution();
  EmbedMlp("timestep_embedder", batch_, config_.time_dim, dim(), dim());
  if (config_.guidance) {
    EmbedMlp("guidance_embedder", batch_, config_.time_dim, dim(), dim());
  }
  EmbedMlp("text_embedder", batch_, config_.pooled_dim, dim(), dim());
  HunyuanTextRefiner();
  JointBlocks();
  Modulation("norm_out", 1, dim(), 2 * dim(), false);
  Head();
}

void Builder::BuildFlux() {
  Embed("x_embedder", Class::kPatchEmbedding, latent_rows(),
        config_.in_channels, dim(), true);
  EmbedMlp("timestep_embedder", batch_, config_.time_dim, dim(), dim());
  if (config_.guidance) {
    EmbedMlp("guidance_embedder", batch_, config_.time_dim, dim(), dim());
  }
  EmbedMlp("text_embedder", batch_, config_.pooled_dim, dim(), dim());
  Embed("context_embedder", Class::kConditionEmbedding, text_rows(),
        config_.text_dim, dim(), true);
  JointBlocks();
  Modulation("norm_out", 1, dim(), 2 * dim(), false);
  Head();
}

void Builder::BuildCogVideoX() {
  const int64_t layers = config_.layers;
  const int64_t joint = joint_tokens();
  PatchConvolution();
  Embed("text_proj", Class::kConditionEmbedding, text_rows(), config_.text_dim,
        dim(), true);
  EmbedMlp("time_embedding", batch_, config_.time_dim, config_.time_embed_dim,
           config_.time_embed_dim);
  Modulation("transformer_blocks.norm", 2 * layers, config_.time_embed_dim,
             6 * dim(), true);
  Projections("transformer_blocks.attn1", Class::kSelfAttentionProjection,
              layers, joint_rows(), dim(), /*leaf_repeats=*/1);
  Core("transformer_blocks.attn1.core", Class::kSelfAttentionCore, layers,
       joint, joint);
  Output("transformer_blocks.attn1", Class::kSelfAttentionProjection, layers,
         joint_rows(), dim());
  Mlp("transformer_blocks.ff", layers, joint_rows(), dim(), config_.ffn_dim,
      false);
  Modulation("norm_out", 1, config_.time_embed_dim, 2 * dim(), false);
  Head();
}

void Builder::BuildLtxVideo() {
  const int64_t layers = config_.layers;
  Embed("proj_in", Class::kPatchEmbedding, latent_rows(), config_.in_channels,
        dim(), true);
  EmbedMlp("time_embed", batch_, config_.time_dim, dim(), dim());
  Embed("time_embed.linear", Class::kModulation, batch_, dim(), 6 * dim(),
        false);
  EmbedMlp("caption_projection", text_rows(), config_.text_dim, dim(), dim());
  Projections("transformer_blocks.attn1", Class::kSelfAttentionProjection,
              layers, latent_rows(), dim(), /*leaf_repeats=*/1);
  Core("transformer_blocks.attn1.core", Class::kSelfAttentionCore, layers,
       tokens_, tokens_);
  Output("transformer_blocks.attn1", Class::kSelfAttentionProjection, layers,
         latent_rows(), dim());
  const Class cross = Class::kCrossAttentionProjection;
  Block(LinearCost("transformer_blocks.attn2.to_q", cross, latent_rows(), dim(),
                   dim()),
        layers)
      .takes_adapter = true;
  ContextProjections("transformer_blocks.attn2", text_rows());
  Core("transformer_blocks.attn2.core", Class::kCrossAttentionCore, layers,
       tokens_, text_);
  Output("transformer_blocks.attn2", cross, layers, latent_rows(), dim());
  Mlp("transformer_blocks.ff", layers, latent_rows(), dim(), config_.ffn_dim,
      false);
  Head();
}

void Builder::BuildMochi() {
  const int64_t pooled_rows = SaturatingSum(text_rows(), batch_);
  PatchConvolution();
  EmbedMlp("timestep_embedder", batch_, config_.time_dim, dim(), dim());
  // A learned pooling of the prompt: its mean attends over itself and the text.
  Embed("pooler.to_kv", Class::kConditionEmbedding, pooled_rows,
        config_.text_dim, 2 * config_.text_dim, true);
  Embed("pooler.to_q", Class::kConditionEmbedding, batch_, config_.text_dim,
        config_.text_dim, true);
  OperatorCost& pool =
      Add(AttentionCost("pooler.core", Class::kConditionEmbedding, batch_, 1, 1,
                        SaturatingSum(text_, 1), config_.text_dim));
  pool.leaf_repeats_lora = 1;
  Embed("pooler.to_out", Class::kConditionEmbedding, batch_, config_.text_dim,
        dim(), false);
  Embed("caption_proj", Class::kConditionEmbedding, text_rows(),
        config_.text_dim, config_.context_dim, true);
  // Learned rotary frequencies: [tokens, 3] x [3, heads * head_dim / 2].
  OperatorCost rope =
      LinearCost("rope", Class::kConditionEmbedding, tokens_, 3, dim() / 2);
  rope.aten = AtenOperator::kBmm;
  rope.leaf_repeats_full = 1;
  rope.leaf_repeats_lora = 1;
  Add(std::move(rope));
  MochiBlocks();
  Modulation("norm_out", 1, dim(), 2 * dim(), false);
  Head();
}

// The last block drops the text stream after attention.
void Builder::MochiBlocks() {
  const int64_t layers = config_.layers;
  const int64_t context = config_.context_dim;
  const int64_t joint = joint_tokens();
  const Class projection = Class::kSelfAttentionProjection;
  Modulation("transformer_blocks.norm1", layers, dim(), 4 * dim(), true);
  Modulation("transformer_blocks.norm1_context", layers - 1, dim(), 4 * context,
             true);
  Modulation("transformer_blocks.norm1_context.last", 1, dim(), context, true);
  Projections("transformer_blocks.attn1", projection, layers, latent_rows(),
              dim(), /*leaf_repeats=*/1);
  Projections("transformer_blocks.attn1.added", projection, layers, text_rows(),
              context, /*leaf_repeats=*/1);
  Core("transformer_blocks.attn1.core", Class::kSelfAttentionCore, layers,
       joint, joint);
  Output("transformer_blocks.attn1", projection, layers, latent_rows(), dim());
  Output("transformer_blocks.attn1.added", projection, layers - 1, text_rows(),
         context);
  Mlp("transformer_blocks.ff", layers, latent_rows(), dim(), config_.ffn_dim,
      true);
  Mlp("transformer_blocks.ff_context", layers - 1, text_rows(), context,
      config_.context_ffn_dim, true);
}

void Builder::BuildUnknown() {
  Block(LinearCost("all_linear_layers", Class::kMlp, latent_rows(),
                   config_.params, 1),
        1);
}

ForwardCost Builder::Build() {
  switch (config_.family) {
    case TransformerFamily::kWan:
      BuildWan();
      break;
    case TransformerFamily::kHunyuanVideo:
      BuildHunyuanVideo();
      break;
    case TransformerFamily::kCogVideoX:
      BuildCogVideoX();
      break;
    case TransformerFamily::kLtxVideo:
      BuildLtxVideo();
      break;
    case TransformerFamily::kMochi:
      BuildMochi();
      break;
    case TransformerFamily::kFlux:
      BuildFlux();
      break;
    case TransformerFamily::kUnknown:
      BuildUnknown();
      break;
  }
  return std::move(cost_);
}

absl::Status ValidateShape(const TransformerConfig& config,
                           const ForwardShape& shape) {
  constexpr int64_t kMaxSide = int64_t{1} << 20;
  const std::pair<const char*, int64_t> sides[] = {
      {"batch", shape.batch},
      {"latent frames", shape.latent_frames},
      {"latent height", shape.latent_height},
      {"latent width", shape.latent_width},
      {"timestep tokens", shape.timestep_tokens},
  };
  for (const auto& [name, value] : sides) {
    if (value < 1 || value > kMaxSide) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", value, ", expected 1 to ", kMaxSide));
    }
  }
  if (shape.text_tokens < 0 || shape.text_tokens > kMaxSide ||
      shape.image_tokens < 0 || shape.image_tokens > kMaxSide) {
    return absl::InvalidArgumentError(
        absl::StrCat("text tokens ", shape.text_tokens, " or image tokens ",
                     shape.image_tokens, " are not in 0 to ", kMaxSide));
  }
  if (LatentTokens(config, shape) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("latent ", shape.latent_frames, "x", shape.latent_height,
                     "x", shape.latent_width, " is smaller than the patch ",
                     config.patch_t, "x", config.patch_h, "x", config.patch_w));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ForwardCost> TransformerForwardCost(
    const TransformerConfig& config, const ForwardShape& shape) {
  FF_RETURN_IF_ERROR(ValidateTransformerConfig(config));
  FF_RETURN_IF_ERROR(ValidateShape(config, shape));
  ForwardCost cost = Builder(config, shape).Build();
  if (cost.TotalFlops() == kSaturatedFlops) {
    return absl::OutOfRangeError("one forward costs more than 2^63 operations");
  }
  return cost;
}

}  // namespace firstframe
