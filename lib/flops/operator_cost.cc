#include "lib/flops/operator_cost.h"

#include <utility>

#include "lib/base/checked_math.h"

namespace firstframe {

absl::string_view OperatorClassName(OperatorClass operator_class) {
  switch (operator_class) {
    case OperatorClass::kSelfAttentionProjection:
      return "self_attn_proj";
    case OperatorClass::kSelfAttentionCore:
      return "self_attn_core";
    case OperatorClass::kCrossAttentionProjection:
      return "cross_attn_proj";
    case OperatorClass::kCrossAttentionCore:
      return "cross_attn_core";
    case OperatorClass::kMlp:
      return "mlp";
    case OperatorClass::kPatchEmbedding:
      return "patch_embed";
    case OperatorClass::kConditionEmbedding:
      return "condition_embed";
    case OperatorClass::kModulation:
      return "modulation";
    case OperatorClass::kHead:
      return "head";
    case OperatorClass::kConvolution:
      return "conv";
  }
  return "unknown";
}

absl::string_view AtenOperatorName(AtenOperator aten) {
  switch (aten) {
    case AtenOperator::kAddmm:
      return "aten.addmm";
    case AtenOperator::kBmm:
      return "aten.bmm";
    case AtenOperator::kConvolution:
      return "aten.convolution";
  }
  return "unknown";
}

int64_t SaturatingProduct(std::initializer_list<int64_t> factors) {
  for (const int64_t factor : factors) {
    if (factor == 0) return 0;
  }
  int64_t product = 1;
  for (const int64_t factor : factors) {
    product = CheckedMultiply(product, factor).value_or(kSaturatedFlops);
    if (product == kSaturatedFlops) return kSaturatedFlops;
  }
  return product;
}

int64_t SaturatingSum(int64_t a, int64_t b) {
  return CheckedAdd(a, b).value_or(kSaturatedFlops);
}

int64_t OperatorCost::TotalFlops() const {
  return SaturatingProduct({repeats, flops});
}

OperatorCost LinearCost(std::string name, OperatorClass operator_class,
                        int64_t rows, int64_t k, int64_t n) {
  OperatorCost cost;
  cost.name = std::move(name);
  cost.operator_class = operator_class;
  cost.aten = AtenOperator::kAddmm;
  cost.flops = SaturatingProduct({2, rows, k, n});
  cost.input_elements = SaturatingProduct({rows, k});
  cost.weight_elements = SaturatingProduct({k, n});
  cost.output_elements = SaturatingProduct({rows, n});
  cost.rows = rows;
  cost.k = k;
  cost.n = n;
  return cost;
}

OperatorCost AttentionCost(std::string name, OperatorClass operator_class,
                           int64_t batch, int64_t heads, int64_t queries,
                           int64_t keys, int64_t head_dim) {
  OperatorCost cost;
  cost.name = std::move(name);
  cost.operator_class = operator_class;
  cost.aten = AtenOperator::kBmm;
  cost.flops = SaturatingProduct({4, batch, heads, queries, keys, head_dim});
  const int64_t q = SaturatingProduct({batch, heads, queries, head_dim});
  const int64_t k = SaturatingProduct({batch, heads, keys, head_dim});
  cost.input_elements = SaturatingSum(q, SaturatingSum(k, k));
  cost.output_elements = q;
  return cost;
}

OperatorCost ConvolutionCost(std::string name, OperatorClass operator_class,
                             int64_t input_positions, int64_t positions,
                             int64_t volume, int64_t in_channels,
                             int64_t out_channels) {
  OperatorCost cost;
  cost.name = std::move(name);
  cost.operator_class = operator_class;
  cost.aten = AtenOperator::kConvolution;
  cost.flops =
      SaturatingProduct({2, positions, volume, in_channels, out_channels});
  cost.input_elements = SaturatingProduct({input_positions, in_channels});
  cost.weight_elements = SaturatingProduct({volume, in_channels, out_channels});
  cost.output_elements = SaturatingProduct({positions, out_channels});
  return cost;
}

int64_t ForwardCost::TotalFlops() const {
  int64_t total = 0;
  for (const OperatorCost& cost : operators) {
    total = SaturatingSum(total, cost.TotalFlops());
  }
  return total;
}

int64_t ForwardCost::FlopsOf(OperatorClass operator_class) const {
  int64_t total = 0;
  for (const OperatorCost& cost : operators) {
    if (cost.operator_class == operator_class) {
      total = SaturatingSum(total, cost.TotalFlops());
    }
  }
  return total;
}

int64_t ForwardCost::FlopsOf(AtenOperator aten) const {
  int64_t total = 0;
  for (const OperatorCost& cost : operators) {
    if (cost.aten == aten) total = SaturatingSum(total, cost.TotalFlops());
  }
  return total;
}

double ForwardCost::TotalBytes(double element_bytes) const {
  double elements = 0;
  for (const OperatorCost& cost : operators) {
    elements += static_cast<double>(cost.repeats) *
                (static_cast<double>(cost.input_elements) +
                 static_cast<double>(cost.weight_elements) +
                 static_cast<double>(cost.output_elements));
  }
  return elements * element_bytes;
}

}  // namespace firstframe
