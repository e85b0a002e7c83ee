// The arithmetic cost of one operator of a forward pass, in the units torch's
// FlopCounterMode uses: a multiply-add is two operations, and only matrix
// products and convolutions count.
//
// Formulas (torch/utils/flop_counter.py, 2.11):
//   product      [m, k] x [k, n]                        2 m k n
//   convolution  output positions P, kernel volume V    2 P V Cin Cout / groups
//   attention    queries Sq, keys Sk, H heads of D      4 B H Sq Sk D
//
// The counts are exact integers. A count that does not fit int64_t saturates
// at kSaturatedFlops, which readers turn into an error.

#ifndef LIB_FLOPS_OPERATOR_COST_H_
#define LIB_FLOPS_OPERATOR_COST_H_

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

// What an operator does for the model; the rows of a cost table.
enum class OperatorClass {
  kSelfAttentionProjection,   // Q, K, V and output of self or joint attention
  kSelfAttentionCore,         // QK^T and AV over the latent sequence
  kCrossAttentionProjection,  // Q, K, V and output against a context
  kCrossAttentionCore,
  kMlp,
  kPatchEmbedding,
  kConditionEmbedding,  // time, text, image and guidance embedders
  kModulation,          // per-block shift, scale and gate projections
  kHead,                // the projection back to latents
  kConvolution,         // everything inside a VAE
};

// "self_attn_proj", "self_attn_core", ...: the names used in JSON.
absl::string_view OperatorClassName(OperatorClass operator_class);

// The ATen operator torch's counter files it under.
enum class AtenOperator { kAddmm, kBmm, kConvolution };
absl::string_view AtenOperatorName(AtenOperator aten);

// One operator, `repeats` times alike.
struct OperatorCost {
  std::string name;  // "blocks.attn1.qkv"
  OperatorClass operator_class = OperatorClass::kMlp;
  AtenOperator aten = AtenOperator::kAddmm;
  int64_t repeats = 1;
  int64_t flops = 0;  // of one repeat

  // Elements of one repeat, each operand moved once: the least traffic that an
  // unfused operator can have.
  int64_t input_elements = 0;
  int64_t weight_elements = 0;
  int64_t output_elements = 0;

  // For linear layers: rows m, and the weight's k and n (LoRA adapters).
  int64_t rows = 0;
  int64_t k = 0;
  int64_t n = 0;

  bool in_block = false;  // inside the stack that step caching skips and
                          // gradient checkpointing recomputes
  // Repeats whose input needs no gradient: when the whole model trains, those
  // that read latents, timesteps or text embeddings directly; when only
  // adapters in the blocks do, also all that depends on no adapter.
  int64_t leaf_repeats_full = 0;
  int64_t leaf_repeats_lora = 0;
  bool takes_adapter = false;  // a projection that LoRA usually wraps

  int64_t TotalFlops() const;
};

inline constexpr int64_t kSaturatedFlops = std::numeric_limits<int64_t>::max();

// Returns the product of non-negative factors, kSaturatedFlops when it does not
// fit.
int64_t SaturatingProduct(std::initializer_list<int64_t> factors);
int64_t SaturatingSum(int64_t a, int64_t b);

// A linear layer on `rows` rows: [rows, k] x [k, n].
OperatorCost LinearCost(std::string name, OperatorClass operator_class,
                        int64_t rows, int64_t k, int64_t n);

// Scaled dot-product attention without causal discount.
OperatorCost AttentionCost(std::string name, OperatorClass operator_class,
                           int64_t batch, int64_t heads, int64_t queries,
                           int64_t keys, int64_t head_dim);

// A convolution that yields `positions` output positions (batch included) from
// a kernel of `volume` taps; `input_positions` only counts traffic.
OperatorCost ConvolutionCost(std::string name, OperatorClass operator_class,
                             int64_t input_positions, int64_t positions,
                             int64_t volume, int64_t in_channels,
                             int64_t out_channels);

// A list of operators with its sums.
struct ForwardCost {
  std::vector<OperatorCost> operators;

  int64_t TotalFlops() const;
  int64_t FlopsOf(OperatorClass operator_class) const;
  int64_t FlopsOf(AtenOperator aten) const;
  // Bytes moved when each operand crosses memory once at `element_bytes`.
  double TotalBytes(double element_bytes) const;
};

}  // namespace firstframe

#endif  // LIB_FLOPS_OPERATOR_COST_H_
