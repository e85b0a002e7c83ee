#include "lib/flops/transformer_builder.h"

#include "absl/strings/str_cat.h"

namespace firstframe {

OperatorCost& TransformerBuilder::Add(OperatorCost cost) {
  cost_.operators.push_back(std::move(cost));
  return cost_.operators.back();
}

void TransformerBuilder::Embed(std::string name, OperatorClass operator_class,
                               int64_t rows, int64_t k, int64_t n,
                               bool is_leaf) {
  OperatorCost& op =
      Add(LinearCost(std::move(name), operator_class, rows, k, n));
  op.leaf_repeats_full = is_leaf ? 1 : 0;
  op.leaf_repeats_lora = 1;
}

void TransformerBuilder::EmbedMlp(const std::string& name, int64_t rows,
                                  int64_t k, int64_t hidden, int64_t n) {
  Embed(name + ".linear_1", OperatorClass::kConditionEmbedding, rows, k, hidden,
        /*is_leaf=*/true);
  Embed(name + ".linear_2", OperatorClass::kConditionEmbedding, rows, hidden, n,
        /*is_leaf=*/false);
}

void TransformerBuilder::PatchConvolution() {
  const int64_t volume =
      SaturatingProduct({config_.patch_t, config_.patch_h, config_.patch_w});
  OperatorCost& op =
      Add(ConvolutionCost("patch_embedding", OperatorClass::kPatchEmbedding,
                          SaturatingProduct({latent_rows(), volume}),
                          latent_rows(), volume, config_.in_channels, dim()));
  op.leaf_repeats_full = 1;
  op.leaf_repeats_lora = 1;
}

void TransformerBuilder::Head() {
  Add(LinearCost("proj_out", OperatorClass::kHead, latent_rows(), dim(),
                 SaturatingProduct({config_.patch_t, config_.patch_h,
                                    config_.patch_w, config_.out_channels})));
}

void TransformerBuilder::Modulation(std::string name, int64_t repeats,
                                    int64_t k, int64_t n, bool in_block) {
  OperatorCost& op = Add(
      LinearCost(std::move(name), OperatorClass::kModulation, batch_, k, n));
  op.repeats = repeats;
  op.leaf_repeats_lora = repeats;
  op.in_block = in_block;
}

OperatorCost& TransformerBuilder::Block(OperatorCost cost, int64_t repeats) {
  OperatorCost& op = Add(std::move(cost));
  op.repeats = repeats;
  op.in_block = true;
  return op;
}

void TransformerBuilder::Projections(const std::string& name,
                                     OperatorClass operator_class,
                                     int64_t repeats, int64_t rows,
                                     int64_t in_dim, int64_t leaf_repeats) {
  for (const char* part : {".to_q", ".to_k", ".to_v"}) {
    const int64_t width =
        absl::string_view(part) == ".to_q" ? dim() : config_.kv_dim();
    OperatorCost& op = Block(LinearCost(absl::StrCat(name, part),
                                        operator_class, rows, in_dim, width),
                             repeats);
    op.leaf_repeats_lora = leaf_repeats;
    op.takes_adapter = true;
  }
}

void TransformerBuilder::ContextProjections(const std::string& name,
                                            int64_t rows) {
  for (const char* part : {".to_k", ".to_v"}) {
    OperatorCost& op =
        Block(LinearCost(absl::StrCat(name, part),
                         OperatorClass::kCrossAttentionProjection, rows, dim(),
                         config_.kv_dim()),
              config_.layers);
    op.leaf_repeats_lora = config_.layers;
    op.takes_adapter = true;
  }
}

void TransformerBuilder::Output(const std::string& name,
                                OperatorClass operator_class, int64_t repeats,
                                int64_t rows, int64_t out_dim) {
  Block(LinearCost(name + ".to_out", operator_class, rows, dim(), out_dim),
        repeats)
      .takes_adapter = true;
}

void TransformerBuilder::Core(std::string name, OperatorClass operator_class,
                              int64_t repeats, int64_t queries, int64_t keys) {
  Block(AttentionCost(std::move(name), operator_class, batch_, config_.heads,
                      queries, keys, config_.head_dim),
        repeats);
}

void TransformerBuilder::Mlp(const std::string& name, int64_t repeats,
                             int64_t rows, int64_t in_dim, int64_t ffn_dim,
                             bool is_gated) {
  Block(LinearCost(name + ".up", OperatorClass::kMlp, rows, in_dim,
                   is_gated ? 2 * ffn_dim : ffn_dim),
        repeats);
  Block(LinearCost(name + ".down", OperatorClass::kMlp, rows, ffn_dim, in_dim),
        repeats);
}

}  // namespace firstframe
