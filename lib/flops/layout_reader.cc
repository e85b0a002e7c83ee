// ReadModelLayout: the architecture behind tensor names and shapes.

#include <array>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/flops/architecture_reader.h"

namespace firstframe {
namespace {

// Heads never change a cost, only their total width does; this splits `dim` the
// way the family publishes it.
void SetHeads(TransformerConfig& config, int64_t dim, int64_t head_dim) {
  const bool fits = head_dim > 0 && dim % head_dim == 0;
  config.head_dim = fits ? head_dim : dim;
  config.heads = fits ? dim / head_dim : 1;
}

// Patch sizes of a [dim, channels, t, h, w] or [dim, channels, h, w] kernel.
void SetPatch(const ModelLayout& layout, absl::string_view name,
              TransformerConfig& config) {
  const std::vector<int64_t>* shape = layout.Find(name);
  if (shape == nullptr || shape->size() < 4) return;
  config.in_channels = (*shape)[1];
  const size_t spatial = shape->size() - 2;
  config.patch_t = shape->size() == 5 ? (*shape)[2] : 1;
  config.patch_h = (*shape)[spatial];
  config.patch_w = (*shape)[spatial + 1];
}

int64_t PatchVolume(const TransformerConfig& config) {
  const int64_t volume =
      SaturatingProduct({config.patch_t, config.patch_h, config.patch_w});
  return volume > 0 ? volume : 1;
}

TransformerConfig DiffusersWan(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kWan;
  config.class_name = "WanTransformer3DModel";
  SetHeads(config, layout.Dim("patch_embedding.weight", 0), 128);
  SetPatch(layout, "patch_embedding.weight", config);
  config.layers = layout.CountIndexed("blocks.");
  config.ffn_dim = layout.Dim("blocks.0.ffn.net.0.proj.weight", 0);
  config.text_dim =
      layout.Dim("condition_embedder.text_embedder.linear_1.weight", 1);
  config.time_dim =
      layout.Dim("condition_embedder.time_embedder.linear_1.weight", 1);
  config.image_dim =
      layout.Dim("condition_embedder.image_embedder.ff.net.0.proj.weight", 0);
  config.added_kv_dim = layout.Dim("blocks.0.attn2.add_k_proj.weight", 1);
  config.out_channels = layout.Dim("proj_out.weight", 0) / PatchVolume(config);
  return config;
}

TransformerConfig OriginalWan(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kWan;
  config.class_name = "WanModel";
  SetHeads(config, layout.Dim("patch_embedding.weight", 0), 128);
  SetPatch(layout, "patch_embedding.weight", config);
  config.layers = layout.CountIndexed("blocks.");
  config.ffn_dim = layout.Dim("blocks.0.ffn.0.weight", 0);
  config.text_dim = layout.Dim("text_embedding.0.weight", 1);
  config.time_dim = layout.Dim("time_embedding.0.weight", 1);
  config.image_dim = layout.Dim("img_emb.proj.1.weight", 1);
  config.added_kv_dim = layout.Dim("blocks.0.cross_attn.k_img.weight", 1);
  config.out_channels = layout.Dim("head.head.weight", 0) / PatchVolume(config);
  return config;
}

TransformerConfig HunyuanVideo(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kHunyuanVideo;
  config.class_name = "HunyuanVideoTransformer3DModel";
  SetHeads(config, layout.Dim("x_embedder.proj.weight", 0),
           layout.Dim("transformer_blocks.0.attn.norm_q.weight", 0));
  SetPatch(layout, "x_embedder.proj.weight", config);
  config.layers = layout.CountIndexed("transformer_blocks.");
  config.single_layers = layout.CountIndexed("single_transformer_blocks.");
  config.refiner_layers =
      layout.CountIndexed("context_embedder.token_refiner.refiner_blocks.");
  config.ffn_dim = layout.Dim("transformer_blocks.0.ff.net.0.proj.weight", 0);
  config.text_dim = layout.Dim("context_embedder.proj_in.weight", 1);
  config.pooled_dim =
      layout.Dim("time_text_embed.text_embedder.linear_1.weight", 1);
  config.time_dim =
      layout.Dim("time_text_embed.timestep_embedder.linear_1.weight", 1);
  config.guidance =
      layout.Find("time_text_embed.guidance_embedder.linear_1.weight") !=
      nullptr;
  config.out_channels = layout.Dim("proj_out.weight", 0) / PatchVolume(config);
  return config;
}

TransformerConfig CogVideoX(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kCogVideoX;
  config.class_name = "CogVideoXTransformer3DModel";
  SetHeads(config, layout.Dim("patch_embed.proj.weight", 0),
           layout.Dim("transformer_blocks.0.attn1.norm_q.weight", 0));
  SetPatch(layout, "patch_embed.proj.weight", config);
  config.layers = layout.CountIndexed("transformer_blocks.");
  config.ffn_dim = layout.Dim("transformer_blocks.0.ff.net.0.proj.weight", 0);
  config.text_dim = layout.Dim("patch_embed.text_proj.weight", 1);
  config.time_dim = layout.Dim("time_embedding.linear_1.weight", 1);
  config.time_embed_dim = layout.Dim("time_embedding.linear_1.weight", 0);
  config.out_channels = layout.Dim("proj_out.weight", 0) / PatchVolume(config);
  return config;
}

TransformerConfig LtxVideo(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kLtxVideo;
  config.class_name = "LTXVideoTransformer3DModel";
  SetHeads(config, layout.Dim("proj_in.weight", 0), 64);
  config.in_channels = layout.Dim("proj_in.weight", 1);
  config.out_channels = layout.Dim("proj_out.weight", 0);
  config.layers = layout.CountIndexed("transformer_blocks.");
  config.ffn_dim = layout.Dim("transformer_blocks.0.ff.net.0.proj.weight", 0);
  config.text_dim = layout.Dim("caption_projection.linear_1.weight", 1);
  config.time_dim =
      layout.Dim("time_embed.emb.timestep_embedder.linear_1.weight", 1);
  return config;
}

TransformerConfig Mochi(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kMochi;
  config.class_name = "MochiTransformer3DModel";
  SetHeads(config, layout.Dim("patch_embed.proj.weight", 0),
           layout.Dim("transformer_blocks.0.attn1.norm_q.weight", 0));
  SetPatch(layout, "patch_embed.proj.weight", config);
  config.layers = layout.CountIndexed("transformer_blocks.");
  config.ffn_dim = layout.Dim("transformer_blocks.0.ff.net.2.weight", 1);
  config.context_ffn_dim =
      layout.Dim("transformer_blocks.0.ff_context.net.2.weight", 1);
  config.context_dim = layout.Dim("time_embed.caption_proj.weight", 0);
  config.text_dim = layout.Dim("time_embed.caption_proj.weight", 1);
  config.time_dim =
      layout.Dim("time_embed.timestep_embedder.linear_1.weight", 1);
  config.out_channels = layout.Dim("proj_out.weight", 0) / PatchVolume(config);
  return config;
}

TransformerConfig Flux(const ModelLayout& layout) {
  TransformerConfig config;
  config.family = TransformerFamily::kFlux;
  config.class_name = "FluxTransformer2DModel";
  SetHeads(config, layout.Dim("x_embedder.weight", 0),
           layout.Dim("transformer_blocks.0.attn.norm_q.weight", 0));
  config.in_channels = layout.Dim("x_embedder.weight", 1);
  config.out_channels = layout.Dim("proj_out.weight", 0);
  config.layers = layout.CountIndexed("transformer_blocks.");
  config.single_layers = layout.CountIndexed("single_transformer_blocks.");
  config.ffn_dim = layout.Dim("transformer_blocks.0.ff.net.0.proj.weight", 0);
  config.text_dim = layout.Dim("context_embedder.weight", 1);
  config.pooled_dim =
      layout.Dim("time_text_embed.text_embedder.linear_1.weight", 1);
  config.time_dim =
      layout.Dim("time_text_embed.timestep_embedder.linear_1.weight", 1);
  config.guidance =
      layout.Find("time_text_embed.guidance_embedder.linear_1.weight") !=
      nullptr;
  return config;
}

// A family is known by tensors that no other has.
struct Signature {
  std::array<absl::string_view, 2> tensors;
  TransformerConfig (*read)(const ModelLayout&);
  int64_t text_tokens;
  bool states_text_tokens = false;  // as an attribute of its class
};

constexpr Signature kSignatures[] = {
    {{"condition_embedder.text_embedder.linear_1.weight",
      "blocks.0.ffn.net.0.proj.weight"},
     DiffusersWan,
     512},
    {{"text_embedding.0.weight", "blocks.0.cross_attn.q.weight"},
     OriginalWan,
     512,
     true},
    {{"x_embedder.proj.weight", "context_embedder.proj_in.weight"},
     HunyuanVideo,
     256},
    {{"patch_embed.text_proj.weight", "time_embedding.linear_1.weight"},
     CogVideoX,
     226},
    {{"caption_projection.linear_1.weight", "proj_in.weight"}, LtxVideo, 128},
    {{"time_embed.caption_proj.weight", "patch_embed.proj.weight"}, Mochi, 256},
    {{"context_embedder.weight", "single_transformer_blocks.0.proj_mlp.weight"},
     Flux,
     512},
};

}  // namespace

absl::StatusOr<ModelDescription> ReadModelLayout(const ModelLayout& layout,
                                                 absl::string_view where) {
  if (layout.tensors().empty()) {
    return absl::NotFoundError(absl::StrCat(where, ": no tensors"));
  }
  ModelDescription model;
  model.name = std::string(where);
  for (const Signature& signature : kSignatures) {
    if (!layout.Find(signature.tensors[0]) ||
        !layout.Find(signature.tensors[1])) {
      continue;
    }
    TransformerConfig config = signature.read(layout);
    config.default_text_tokens = signature.text_tokens;
    config.default_image_tokens = config.image_dim > 0 ? 257 : 0;
    if (!ValidateTransformerConfig(config).ok()) break;
    model.class_name = config.class_name;
    model.config = std::move(config);
    model.notes.push_back("architecture inferred from tensor names and shapes");
    if (signature.states_text_tokens) {
      model.stated_text_tokens = signature.text_tokens;
    }
    model.compat = CompatModelFromLayout(layout, model.stated_text_tokens);
    return model;
  }
  TransformerConfig config;
  config.class_name = "unknown";
  config.params = layout.Elements();
  model.class_name = config.class_name;
  model.config = std::move(config);
  model.compat = CompatModelFromLayout(layout, /*text_tokens=*/0);
  model.notes.push_back(
      "unknown architecture: only linear layers are priced, at 2 * parameters "
      "* tokens; attention is left out, which understates long videos several "
      "times over");
  return model;
}

}  // namespace firstframe
