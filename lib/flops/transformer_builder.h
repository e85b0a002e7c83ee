// The pieces that transformer_model.cc assembles forwards from.

#ifndef LIB_FLOPS_TRANSFORMER_BUILDER_H_
#define LIB_FLOPS_TRANSFORMER_BUILDER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "lib/flops/operator_cost.h"
#include "lib/flops/transformer_config.h"

namespace firstframe {

// Collects the operators of one forward. Rows are batch times tokens. The
// config must outlive the builder. Thread-compatible.
class TransformerBuilder {
 public:
  TransformerBuilder(const TransformerConfig& config, const ForwardShape& shape)
      : config_(config),
        batch_(shape.batch),
        tokens_(LatentTokens(config, shape)),
        text_(shape.text_tokens),
        image_(shape.image_tokens),
        timesteps_(shape.timestep_tokens) {}

 protected:
  int64_t dim() const { return config_.hidden_dim(); }
  int64_t latent_rows() const { return SaturatingProduct({batch_, tokens_}); }
  int64_t text_rows() const { return SaturatingProduct({batch_, text_}); }
  int64_t joint_tokens() const { return SaturatingSum(tokens_, text_); }
  int64_t joint_rows() const {
    return SaturatingProduct({batch_, joint_tokens()});
  }

  OperatorCost& Add(OperatorCost cost);

  // A layer outside the blocks. `is_leaf`: its input needs no gradient even
  // when the whole model trains.
  void Embed(std::string name, OperatorClass operator_class, int64_t rows,
             int64_t k, int64_t n, bool is_leaf);
  // Two layers with an activation between, the first a leaf.
  void EmbedMlp(const std::string& name, int64_t rows, int64_t k,
                int64_t hidden, int64_t n);
  void PatchConvolution();
  // hidden_dim -> patch volume * out_channels.
  void Head();
  // Shift, scale and gate from a conditioning vector of width `k`.
  void Modulation(std::string name, int64_t repeats, int64_t k, int64_t n,
                  bool in_block);

  // An operator inside the blocks.
  OperatorCost& Block(OperatorCost cost, int64_t repeats);
  // Q, K and V of one input of width `in_dim`; in `leaf_repeats` blocks that
  // input depends on no adapter.
  void Projections(const std::string& name, OperatorClass operator_class,
                   int64_t repeats, int64_t rows, int64_t in_dim,
                   int64_t leaf_repeats);
  // K and V of a context that depends on no adapter.
  void ContextProjections(const std::string& name, int64_t rows);
  void Output(const std::string& name, OperatorClass operator_class,
              int64_t repeats, int64_t rows, int64_t out_dim);
  void Core(std::string name, OperatorClass operator_class, int64_t repeats,
            int64_t queries, int64_t keys);
  void Mlp(const std::string& name, int64_t repeats, int64_t rows,
           int64_t in_dim, int64_t ffn_dim, bool is_gated);

  const TransformerConfig& config_;
  const int64_t batch_;
  const int64_t tokens_;  // latent tokens a sample
  const int64_t text_;
  const int64_t image_;
  const int64_t timesteps_;
  ForwardCost cost_;
};

}  // namespace firstframe

#endif  // LIB_FLOPS_TRANSFORMER_BUILDER_H_
