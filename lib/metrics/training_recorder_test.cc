#include "lib/metrics/training_recorder.h"

#include <random>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/metrics/exact_sum.h"
#include "lib/testing/fake_clock.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeClock;
using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000;

double PhaseSeconds(const TrainWindowRecord& record, absl::string_view name) {
  for (const auto& [phase, seconds] : record.phases_s) {
    if (phase == name) return seconds;
  }
  return 0;
}

class TrainingRecorderTest : public ::testing::Test {
 protected:
  // One micro-step: 3 ms of data before it, 2 of preparation, then models.
  void MicroStep(TrainingRecorder& train, bool is_boundary,
                 int64_t tokens = 100) {
    clock_.Advance(3 * kMs);
    MicroStepScope micro(train);
    clock_.Advance(2 * kMs);
    Work(train, Phase::kVaeEncode, 5);
    {
      PhaseScope forward(train, Phase::kForward);
      forward.SetShape(tokens, 2);
      clock_.Advance(4 * kMs);
      Work(train, Phase::kTextEncoder, 3);  // inside: folds into fwd
    }
    {
      PhaseScope backward(train, Phase::kBackward);
      clock_.Advance(10 * kMs);
      Work(train, Phase::kForward, 4);  // recomputed: stays in bwd
    }
    if (!is_boundary) {
      OptimizerScope step(train, this, false);
      return;
    }
    Work(train, Phase::kClip, 1);
    clock_.Advance(6 * kMs);  // other
    OptimizerScope step(train, this, true);
    clock_.Advance(2 * kMs);
  }
  void Work(TrainingRecorder& train, Phase phase, int64_t ms) {
    PhaseScope scope(train, phase);
    clock_.Advance(ms * kMs);
  }

  FakeClock clock_;
  std::ostringstream log_;
};

TEST_F(TrainingRecorderTest, PartitionsStepsIntoPhases) {
  PerfSettings settings{.level = 2, .warmup = 1, .every = 3};
  settings.total_steps = 10;
  PerfSink sink(settings, &log_);
  MarkerSource markers(clock_);
  TrainingRecorder train(sink, markers);
  for (int step = 0; step < 5; ++step) {
    MicroStep(train, false);
    MicroStep(train, true);
  }
  train.Finish();
  train.Finish();
  std::vector<std::string> lines;
  std::istringstream stream(log_.str());
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  // 2 x (3 + 2 + 5 + 7 + 14) and 1 + 6 + 2 at the end: 71 ms.
  const std::string phases =
      "data 0.01s prep 0.00s vae_enc 0.01s fwd 0.01s bwd 0.03s clip 0.00s opt "
      "0.00s other 0.01s";
  ASSERT_EQ(lines.size(), 8u) << log_.str();
  EXPECT_EQ(lines[0],
            "[Perf][rank0] step 0-2 (1 warmup excluded) | "
            "0.07s/step p95 0.07s | " +
                phases +
                " | 2 micro-steps | 56.338 samples/s (local, dp=1) | ETA "
                "0.0h");
  EXPECT_EQ(
      lines[2],
      "[Perf][rank0]   step 1 0.071s: data 0.006 prep 0.004 vae_enc 0.010 "
      "fwd 0.014 bwd 0.028 clip 0.001 opt 0.002 other 0.006");
  EXPECT_THAT(lines[4], HasSubstr("step 3-4 | 0.07s/step"));
  EXPECT_EQ(lines[7],
            "[Perf][rank0] === 4 steps | p50 0.07s/step p95 0.07s | "
            "0.00h in-loop ===");
}

TEST_F(TrainingRecorderTest, TheFirstOptimizerOwnsTheBoundary) {
  PerfSink sink(PerfSettings{.level = 1, .every = 1}, &log_);
  MarkerSource markers(clock_);
  TrainingRecorder train(sink, markers);
  int generator = 0;
  int critic = 0;
  for (int step = 0; step < 3; ++step) {
    MicroStepScope micro(train);
    {
      OptimizerScope first(train, &generator, true);
      clock_.Advance(40 * kMs);
    }
    OptimizerScope second(train, &critic, true);
    clock_.Advance(60 * kMs);
  }
  train.Finish();
  EXPECT_THAT(log_.str(), HasSubstr("step 0-0 | 0.04s/step"));
  EXPECT_THAT(log_.str(), HasSubstr("step 1-1 | 0.10s/step p95 0.10s | "
                                    "opt 0.10s"));
  EXPECT_THAT(log_.str(), HasSubstr("=== 3 steps"));
}

TEST_F(TrainingRecorderTest, NeverWaitsForTheDevice) {
  FakeCuda cuda;
  ASSERT_THAT(cuda.SetDevice(0), IsOk());
  const cuda::StreamHandle stream = *cuda.CreateStream(0);
  {
    PerfSink sink(PerfSettings{.level = 1, .every = 1}, &log_);
    MarkerSource markers(clock_, {&cuda, 0, stream});
    TrainingRecorder train(sink, markers);
    cuda.Hold();  // the device falls behind for good
    MicroStep(train, true);
    MicroStep(train, true);
    EXPECT_EQ(log_.str(), "") << "both steps wait for the device";
    MicroStep(train, true);
    EXPECT_THAT(log_.str(), HasSubstr("step 0-0"));
    EXPECT_THAT(log_.str(), Not(HasSubstr("step 1-1")));
    cuda.Release();
    MicroStep(train, true);
    EXPECT_THAT(log_.str(), HasSubstr("step 3-3"));
    EXPECT_EQ(cuda.calls("SynchronizeStream"), 0);
    EXPECT_EQ(cuda.calls("SynchronizeEvent"), 0);
    EXPECT_EQ(cuda.calls("SynchronizeDevice"), 0);
  }
  EXPECT_THAT(cuda.DestroyStream(stream), IsOk());
  EXPECT_EQ(cuda.live_handles(), 0) << "every event was given back";
}

// Random loops: whatever the nesting, phases and `other` add up to the step.
TEST_F(TrainingRecorderTest, PhasesSumToTheStep) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % n); };
  for (int run = 0; run < 200; ++run) {
    PerfSettings settings{.level = 1, .warmup = pick(3), .every = 1};
    std::ostringstream log;
    PerfSink sink(settings, &log);
    MarkerSource markers(clock_);
    TrainingRecorder train(sink, markers);
    const int steps = 1 + pick(6);
    for (int step = 0; step < steps; ++step) {
      for (int micro_step = pick(3); micro_step >= 0; --micro_step) {
        clock_.Advance(pick(9) * kMs);
        MicroStepScope micro(train);
        clock_.Advance(pick(9) * kMs);
        for (int call = pick(5); call > 0; --call) {
          PhaseScope outer(train, static_cast<Phase>(2 + pick(7)));
          clock_.Advance(pick(9) * kMs);
          PhaseScope inner(train, static_cast<Phase>(2 + pick(7)));
          inner.SetShape(pick(100), pick(3));
          clock_.Advance(pick(9) * kMs);
        }
        OptimizerScope opt(train, this, micro_step == 0);
        clock_.Advance(pick(9) * kMs);
      }
    }
    train.Finish();
    EXPECT_THAT(log.str(), Not(HasSubstr("overrun")));
  }
}

TEST(AggregateWindow, PhasesSumToTheMeanStep) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> seconds(0, 2);
  for (int run = 0; run < 100; ++run) {
    std::vector<StepRecord> steps(1 + random() % 20);
    for (size_t i = 0; i < steps.size(); ++i) {
      StepRecord& step = steps[i];
      step.step = static_cast<int64_t>(i);
      step.is_warmup = i < run % 4u;
      step.tokens = static_cast<int64_t>(random() % 3 * 1000);
      step.samples = static_cast<int64_t>(random() % 3);
      for (double& phase : step.phases_s) phase = seconds(random);
      step.total_s = ExactSum(step.phases_s);
    }
    const TrainWindowRecord record = AggregateWindow(
        steps, PerfSettings{}, TrainedModel{.model = {.params = 10}}, 100.0);
    double sum = 0;
    for (const auto& [name, value] : record.phases_s) sum += value;
    const double mean =
        record.throughput->wall_s / static_cast<double>(record.steps);
    EXPECT_THAT(sum, DoubleNear(mean, 1e-12));
    EXPECT_EQ(record.steps + record.warmup_excluded,
              static_cast<int64_t>(steps.size()));
    EXPECT_LE(record.step_s_p50, record.step_s_p95);
    if (record.throughput->priced) {
      EXPECT_LE(record.throughput->priced->priced_s,
                record.throughput->wall_s + 1e-12);
    }
  }
}

// An image step and a video step: sums over sums, and unpriced steps apart.
TEST(AggregateWindow, DividesSumsBySums) {
  std::vector<StepRecord> steps(3);
  steps[0] = {.step = 0, .total_s = 1, .tokens = 1000, .samples = 1};
  steps[1] = {.step = 1, .total_s = 9, .tokens = 9000, .samples = 1};
  steps[2] = {.step = 2, .total_s = 5, .tokens = 0, .samples = 0};
  PerfSettings settings;
  settings.world_size = 4;
  const TrainedModel model{.model = {.params = 100'000'000},
                           .trainable = 1'000'000,
                           .checkpointing = true,
                           .sequence_parallel = 2};
  const TrainWindowRecord record =
      AggregateWindow(steps, settings, model, 10.0);
  const WindowThroughput& throughput = *record.throughput;
  EXPECT_EQ(throughput.wall_s, 15);
  EXPECT_EQ(throughput.dp, 2);
  EXPECT_EQ(throughput.samples_per_s, 2.0 / 15.0);
  const WindowThroughput::Priced& priced = *throughput.priced;
  EXPECT_EQ(priced.priced_steps, 2);
  EXPECT_EQ(priced.priced_s, 10);
  EXPECT_EQ(priced.tokens, 5000);
  EXPECT_EQ(priced.flops_coef, 2);
  EXPECT_EQ(priced.flops_coef_hw, 3);
  // 2 x (2 * 1e8 * 10000) on 2 of the rank groups, in 10 s.
  EXPECT_DOUBLE_EQ(priced.tflops, 2 * 2e12 * 2 / 10 / 1e12);
  EXPECT_DOUBLE_EQ(*priced.peak_tflops, 40);
  EXPECT_DOUBLE_EQ(*priced.mfu, priced.tflops / 40);
  EXPECT_DOUBLE_EQ(*priced.hfu, 1.5 * *priced.mfu);
  EXPECT_THAT(FormatTrainWindow("[Perf][rank0]", record),
              HasSubstr("[2/3 steps priced]"));
}

TEST(AggregateWindow, AllWarmupIsBetterThanNothing) {
  std::vector<StepRecord> steps(2);
  steps[0] = {.step = 0, .is_warmup = true, .total_s = 1};
  steps[1] = {.step = 1, .is_warmup = true, .total_s = 3};
  const TrainWindowRecord record =
      AggregateWindow(steps, PerfSettings{}, std::nullopt, std::nullopt);
  EXPECT_EQ(record.steps, 2);
  EXPECT_EQ(record.warmup_excluded, 0);
  EXPECT_EQ(record.step_s_p50, 2);
  EXPECT_FALSE(record.throughput->priced.has_value());
  EXPECT_EQ(PhaseSeconds(record, "fwd"), 0);
}

}  // namespace
}  // namespace firstframe
