// The cost model of VideoX-Fun's VIDEOX_PERF metrics, kept to the last digit so
// that its records and ours compare:
//
//   forward   2 * params * tokens
//             + 4 * tokens^2 * self_width + 4 * tokens * text * cross_width
//   training  3 forwards when at least half the parameters train, else 2; one
//             more in the hardware figure with gradient checkpointing
//
// Widths are the output widths of query projections, summed over the attention
// modules that run over latents. What the formula leaves out, and by how much,
// is in docs/flops.md; lib/flops/transformer_model.h has the exact count.

#ifndef LIB_FLOPS_COMPAT_MODEL_H_
#define LIB_FLOPS_COMPAT_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "lib/flops/model_layout.h"

namespace firstframe {

// Sums of query widths by what keys and values run over, and how many modules
// they come from.
struct AttentionWidths {
  int64_t self = 0;
  int64_t cross = 0;
  int64_t modules = 0;
};

// Reads the widths off tensor names: a module is attention when it owns q, k
// and v projections (`q`, `to_q`, `q_proj`, ...) or a fused one (`qkv`,
// `to_qkv`, `qkv_proj`) whose width is a multiple of three. Text refiner stacks
// (`token_refiner`, `context_refiner`) are left out. A module is cross
// attention when its name contains "cross" or ends in "attn2".
AttentionWidths CompatAttentionWidths(const ModelLayout& layout);

struct CompatModel {
  int64_t params = 0;
  AttentionWidths widths;   // all zero: attention is not priced
  int64_t text_tokens = 0;  // as the model advertises it (Wan's text_len), or 0

  double LinearFlops(int64_t tokens) const;
  // Zero when no self-attention width is known, as in the original.
  double AttentionFlops(int64_t tokens) const;
  double ForwardFlops(int64_t tokens) const {
    return LinearFlops(tokens) + AttentionFlops(tokens);
  }
};

// Builds the model from tensor names and shapes alone.
CompatModel CompatModelFromLayout(const ModelLayout& layout,
                                  int64_t text_tokens);

// Multipliers on a forward's cost for one training step.
struct TrainingCoefficients {
  double model = 3;     // MFU: forward and backward
  double hardware = 3;  // HFU: recomputation too
  std::string reason;   // "lora, ckpt on -> 2x/3x, attn from dims (60 modules)"
};

struct CompatTraining {
  int64_t params = 0;
  int64_t trainable = 0;
  bool checkpointing = false;
  // Modules behind the widths; 0 when widths could not be read.
  int64_t attention_modules = 0;
  bool price_attention = true;        // VIDEOX_PERF_FLOPS_ATTN
  std::optional<double> coefficient;  // VIDEOX_PERF_FLOPS_COEF
};

TrainingCoefficients CompatTrainingCoefficients(const CompatTraining& training);

}  // namespace firstframe

#endif  // LIB_FLOPS_COMPAT_MODEL_H_
