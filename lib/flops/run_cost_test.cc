#include "lib/flops/run_cost.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/flops/known_models.h"
#include "lib/flops/transformer_model.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

// Wan 2.1 1.3B over 81 frames at 480x832.
ForwardCost Forward(int64_t batch = 1) {
  const auto model = KnownModel("wan2.1-t2v-1.3b");
  const auto cost =
      TransformerForwardCost(*model->transformer(), {.batch = batch,
                                                     .latent_frames = 21,
                                                     .latent_height = 60,
                                                     .latent_width = 104,
                                                     .text_tokens = 512});
  return *cost;
}

RunCost Price(const RunOptions& options) {
  const auto cost = PriceRun(Forward(), options);
  EXPECT_TRUE(cost.ok()) << cost.status();
  return *cost;
}

TEST(PriceRun, StepsAndGuidanceMultiply) {
  const double forward = static_cast<double>(Forward().TotalFlops());
  const RunCost cost = Price({.steps = 50, .forwards_per_step = 2});
  EXPECT_EQ(cost.forward, forward);
  EXPECT_EQ(cost.model, 100 * forward);
  EXPECT_EQ(cost.executed, cost.model);
  EXPECT_EQ(cost.hardware, cost.model);
  // Both guidance branches in one batch cost the same, time embedding included.
  EXPECT_EQ(Forward(2).TotalFlops(), 2 * Forward(1).TotalFlops());
}

TEST(TransformerForwardCost, GroupedHeadsNarrowKeysAndValuesAlone) {
  TransformerConfig config = *KnownModel("wan2.1-t2v-1.3b")->transformer();
  const ForwardShape shape{.latent_frames = 3,
                           .latent_height = 60,
                           .latent_width = 104,
                           .text_tokens = 512};
  const auto full = TransformerForwardCost(config, shape);
  config.kv_heads = config.heads / 4;
  const auto grouped = TransformerForwardCost(config, shape);
  EXPECT_EQ(grouped->FlopsOf(AtenOperator::kBmm),
            full->FlopsOf(AtenOperator::kBmm));
  // Three quarters of K and V, of self and cross attention.
  const int64_t d = config.hidden_dim();
  EXPECT_EQ(full->TotalFlops() - grouped->TotalFlops(),
            config.layers * 2 * 2 * (4680 + 512) * d * (d - d / 4));
}

TEST(PriceRun, DensityScalesOnlyTheSelfAttentionCore) {
  const ForwardCost forward = Forward();
  const double core =
      static_cast<double>(forward.FlopsOf(OperatorClass::kSelfAttentionCore));
  const RunCost sparse = Price({.attention_density = 0.25});
  EXPECT_EQ(sparse.model, static_cast<double>(forward.TotalFlops()));
  EXPECT_DOUBLE_EQ(sparse.executed, sparse.model - 0.75 * core);
  // 21 causal blocks compute (21 + 1) / 42 of the square.
  const RunCost causal = Price({.causal_blocks = 21});
  EXPECT_DOUBLE_EQ(causal.executed, causal.model - (1 - 22.0 / 42.0) * core);
}

TEST(PriceRun, CachedForwardsStillPayForEmbeddingsAndHead) {
  const ForwardCost forward = Forward();
  double outside = 0;
  for (const OperatorCost& op : forward.operators) {
    if (!op.in_block) outside += static_cast<double>(op.TotalFlops());
  }
  const double total = static_cast<double>(forward.TotalFlops());
  const RunCost cost = Price({.steps = 50, .cached_forwards = 20});
  EXPECT_DOUBLE_EQ(cost.model, 50 * total);
  EXPECT_DOUBLE_EQ(cost.executed, 30 * total + 20 * outside);
  EXPECT_THAT(PriceRun(forward, {.steps = 2, .cached_forwards = 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("3 cached forwards of 2")));
}

TEST(PriceRun, ParallelGroupsShareOrMultiply) {
  const RunCost one = Price({.steps = 4});
  const RunCost sequence = Price({.steps = 4, .sequence_parallel = 8});
  EXPECT_EQ(sequence.model, one.model);
  EXPECT_EQ(sequence.devices, 8);
  EXPECT_DOUBLE_EQ(sequence.per_device_hardware, one.hardware / 8);
  const RunCost data =
      Price({.steps = 4, .sequence_parallel = 2, .data_parallel = 4});
  EXPECT_EQ(data.model, 4 * one.model);
  EXPECT_EQ(data.devices, 8);
}

TEST(PriceRun, CheckpointingRaisesHfuNotMfu) {
  RunOptions options{.training = TrainingMode::kFull};
  const RunCost plain = Price(options);
  const double forward = plain.forward;
  // Embedding layers need no input gradient: a little under three forwards.
  EXPECT_LT(plain.model, 3 * forward);
  EXPECT_GT(plain.model, 2.999 * forward);
  options.checkpointing = Checkpointing::kFull;
  const RunCost full = Price(options);
  EXPECT_EQ(full.model, plain.model);
  EXPECT_THAT((full.hardware - plain.hardware) / forward, DoubleNear(1, 0.001));
  options.checkpointing = Checkpointing::kSelective;
  const RunCost selective = Price(options);
  EXPECT_GT(selective.hardware, plain.hardware);
  EXPECT_LT(selective.hardware, full.hardware);
  // A fused backward computes the scores once more: half the core.
  options.checkpointing = Checkpointing::kNone;
  options.attention_backward_executed = 2.0;
  const RunCost unfused = Price(options);
  EXPECT_EQ(unfused.hardware, unfused.executed);
  EXPECT_GT(plain.hardware, unfused.hardware);
}

TEST(PriceRun, LoraKeepsTheAttentionBackward) {
  RunOptions options{.training = TrainingMode::kLora, .lora_rank = 16};
  const RunCost lora = Price(options);
  // Linear layers twice, attention three times: between the two.
  EXPECT_GT(lora.model, 2.5 * lora.forward);
  EXPECT_LT(lora.model, 3.0 * lora.forward);
}

TEST(PriceRun, DistillationAddsForwardsOfOtherRoles) {
  RunOptions options{.training = TrainingMode::kFull};
  const RunCost student = Price(options);
  options.teacher_forwards = 2;
  options.critic_forwards = 1;
  options.critic_updates = 1;
  const RunCost all = Price(options);
  EXPECT_DOUBLE_EQ(all.model, student.model + 6 * student.forward);
}

TEST(PriceRun, RefusesOptionsOutOfRange) {
  EXPECT_THAT(
      PriceRun(Forward(), {.steps = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps is 0")));
  for (const double density :
       {0.0, 1.5, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(PriceRun(Forward(), {.attention_density = density}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("attention density")));
  }
}

TEST(PriceRun, LoraNeedsARank) {
  EXPECT_THAT(
      PriceRun(Forward(), {.training = TrainingMode::kLora, .lora_rank = 0}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("LoRA rank is 0")));
}

TEST(ComputeUtilization, FlagsAndKeepsMoreThanOneHundredPercent) {
  RunCost cost{.model = 2e15, .executed = 1e15, .hardware = 1.5e15};
  auto result = ComputeUtilization(cost, 1.0, 1000.0);
  ASSERT_TRUE(result.ok());
  EXPECT_DOUBLE_EQ(*result->mfu, 2.0);
  EXPECT_DOUBLE_EQ(*result->executed_mfu, 1.0);
  EXPECT_DOUBLE_EQ(*result->hfu, 1.5);
  EXPECT_TRUE(result->above_peak);
  EXPECT_EQ(result->tflops, 2000.0);
  result = ComputeUtilization(cost, 1.0, std::nullopt);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->mfu.has_value());
  for (const double seconds : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THAT(ComputeUtilization(cost, seconds, 1000.0),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("measured time")));
  }
}

TEST(ComputeRoofline, TellsComputeFromMemoryBound) {
  ForwardCost gemm;
  gemm.operators.push_back(
      LinearCost("big", OperatorClass::kMlp, 4096, 4096, 4096));
  // 2 n^3 operations over 3 n^2 elements of 2 bytes: n / 3.
  Roofline roofline = ComputeRoofline(gemm, 2, 989, 4800);
  EXPECT_DOUBLE_EQ(roofline.intensity, 4096.0 / 3);
  EXPECT_TRUE(roofline.compute_bound);
  EXPECT_DOUBLE_EQ(roofline.min_seconds, roofline.flops / 989e12);
  ForwardCost row;
  row.operators.push_back(
      LinearCost("row", OperatorClass::kMlp, 1, 4096, 4096));
  roofline = ComputeRoofline(row, 2, 989, 4800);
  EXPECT_FALSE(roofline.compute_bound);
  EXPECT_DOUBLE_EQ(roofline.min_seconds, roofline.bytes / 4800e9);
}

}  // namespace
}  // namespace firstframe
