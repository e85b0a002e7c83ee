// The exact cost of the encoders that condition a diffusion model: T5 and UMT5
// (gated or plain MLP), CLIP text and CLIP vision towers. Equal to torch 2.11's
// FlopCounterMode on the transformers implementations (testdata/flops).

#ifndef LIB_FLOPS_TEXT_ENCODER_COST_H_
#define LIB_FLOPS_TEXT_ENCODER_COST_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/flops/operator_cost.h"

namespace firstframe {

struct TextEncoderConfig {
  std::string class_name;  // "T5EncoderModel"
  int64_t layers = 0;
  int64_t hidden_dim = 0;
  int64_t attention_dim = 0;  // heads * width of a head
  int64_t ffn_dim = 0;
  bool is_gated = false;  // two up projections, as in T5 v1.1

  // Vision towers: a square image in pixels, cut in square patches.
  int64_t image_size = 0;
  int64_t patch_size = 0;
};

// Tokens a vision tower runs on: its patches and a class token.
int64_t VisionTokens(const TextEncoderConfig& config);

// Prices one forward over [batch, tokens]; `tokens` is ignored by vision
// towers. InvalidArgument for sizes that are not positive, OutOfRange past
// int64_t.
absl::StatusOr<ForwardCost> TextEncoderForwardCost(
    const TextEncoderConfig& config, int64_t batch, int64_t tokens);

}  // namespace firstframe

#endif  // LIB_FLOPS_TEXT_ENCODER_COST_H_
