#include "lib/flops/compat_model.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/flops/golden_layouts.h"

namespace firstframe {
namespace {

namespace dom = simdjson::dom;
using ::firstframe::testing::LoadFlopsGolden;
using ::firstframe::testing::LoadGoldenLayouts;

// Ten published transformers, four lengths each: equal to the last digit.
TEST(CompatModel, EqualsTheOriginalFromTensorShapesAlone) {
  dom::parser parser;
  const dom::object golden = LoadFlopsGolden("original_and_torch.json", parser);
  const auto layouts = LoadGoldenLayouts();
  int compared = 0;
  for (const auto& [name, entry] : golden) {
    SCOPED_TRACE(std::string(name));
    CompatModel model = CompatModelFromLayout(layouts.at(std::string(name)), 0);
    EXPECT_EQ(model.params, int64_t{entry["params"]});
    EXPECT_EQ(model.widths.self, int64_t{entry["attn_widths"]["self"]});
    EXPECT_EQ(model.widths.cross, int64_t{entry["attn_widths"]["cross"]});
    EXPECT_EQ(model.widths.modules, int64_t{entry["attn_widths"]["modules"]});
    for (const int tokens : {1560, 8190, 32760, 75600}) {
      const auto figures = entry["flops_fwd_" + std::to_string(tokens)];
      model.text_tokens = 0;
      EXPECT_EQ(model.LinearFlops(tokens), double{figures["linear"]});
      EXPECT_EQ(model.AttentionFlops(tokens), double{figures["attn"]});
      model.text_tokens = 512;
      EXPECT_EQ(model.AttentionFlops(tokens), double{figures["attn_text512"]});
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(CompatAttentionWidths, FindsFusedWrappedAndOriginalNames) {
  ModelLayout layout;
  layout.Add("blocks.0.attn.qkv.weight", {96, 32});      // fused: 32
  layout.Add("blocks.0.other.qkv.weight", {97, 32});     // not a third
  layout.Add("blocks.0.cross_attn.q.weight", {48, 48});  // cross: 48
  layout.Add("blocks.0.cross_attn.k.weight", {48, 48});
  layout.Add("blocks.0.cross_attn.v.weight", {48, 48});
  layout.Add("m.attn1.to_q.base_layer.weight", {64, 64});  // LoRA: 64
  layout.Add("m.attn1.to_k.base_layer.weight", {16, 64});  // GQA
  layout.Add("m.attn1.to_v.base_layer.weight", {16, 64});
  layout.Add("m.attn1.to_q.lora_A.default.weight", {8, 64});
  layout.Add("m.half.to_q.weight", {500, 5});  // k and v missing
  layout.Add("conv.q.weight", {7, 7, 1, 1});   // convolutions
  layout.Add("conv.k.weight", {7, 7, 1, 1});
  layout.Add("conv.v.weight", {7, 7, 1, 1});
  layout.Add("x.Token_Refiner.a.q_proj.weight", {1000, 5});  // a text tower
  layout.Add("x.Token_Refiner.a.k_proj.weight", {1000, 5});
  layout.Add("x.Token_Refiner.a.v_proj.weight", {1000, 5});
  layout.Add("noise_refiner.0.attn.to_qkv.weight", {30, 10});  // over latents
  const AttentionWidths widths = CompatAttentionWidths(layout);
  EXPECT_EQ(widths.self, 32 + 64 + 10);
  EXPECT_EQ(widths.cross, 48);
  EXPECT_EQ(widths.modules, 4);
}

TEST(CompatAttentionWidths, PrefersTheSeparateProjections) {
  ModelLayout layout;
  layout.Add("a.qkv.weight", {300, 10});
  layout.Add("a.q_proj.weight", {40, 10});
  layout.Add("a.k_proj.weight", {20, 10});
  layout.Add("a.v_proj.weight", {20, 10});
  EXPECT_EQ(CompatAttentionWidths(layout).self, 40);
}

TEST(CompatModel, WithoutSelfAttentionHasNoAttentionTerm) {
  CompatModel model{.params = 10, .widths = {0, 99, 1}, .text_tokens = 5};
  EXPECT_EQ(model.AttentionFlops(100), 0.0);
  EXPECT_EQ(model.ForwardFlops(100), 2000.0);
}

TEST(CompatTrainingCoefficients, FollowThresholdCheckpointingAndOverride) {
  CompatTraining run{.params = 1000, .trainable = 500, .attention_modules = 8};
  TrainingCoefficients full = CompatTrainingCoefficients(run);
  EXPECT_EQ(full.model, 3);
  EXPECT_EQ(full.hardware, 3);
  EXPECT_EQ(full.reason, "full, ckpt off -> 3x/3x, attn from dims (8 modules)");

  run.trainable = 499;
  run.checkpointing = true;
  TrainingCoefficients lora = CompatTrainingCoefficients(run);
  EXPECT_EQ(lora.model, 2);
  EXPECT_EQ(lora.hardware, 3);
  EXPECT_EQ(lora.reason, "lora, ckpt on -> 2x/3x, attn from dims (8 modules)");

  run.coefficient = 2.5;
  run.attention_modules = 0;
  const TrainingCoefficients fixed = CompatTrainingCoefficients(run);
  EXPECT_EQ(fixed.model, 2.5);
  EXPECT_EQ(fixed.hardware, 2.5);
  EXPECT_EQ(fixed.reason,
            "lora, ckpt on -> 2x/3x, attn omitted (widths unreadable), "
            "overridden to 2.5x");

  run.price_attention = false;
  EXPECT_THAT(CompatTrainingCoefficients(run).reason,
              ::testing::HasSubstr("attn omitted (disabled)"));
  EXPECT_EQ(CompatTrainingCoefficients({}).model, 3) << "unknown size is full";
}

}  // namespace
}  // namespace firstframe
