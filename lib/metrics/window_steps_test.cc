#include "lib/metrics/window_steps.h"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/percentile.h"

namespace firstframe {
namespace {

WindowSteps Describe(const std::vector<double>& times) {
  WindowSteps window;
  window.steps = static_cast<int64_t>(times.size());
  window.p50_s = Percentile(times, 50);
  window.p95_s = Percentile(times, 95);
  window.total_s = 0;
  for (const double time : times) *window.total_s += time;
  return window;
}

// The windows of testdata/perf/train_full.jsonl. The original, which knew the
// twenty steps, printed "p50 0.13s/step p95 0.15s".
const std::vector<WindowSteps>& GoldenWindows() {
  static const auto* const kWindows = new std::vector<WindowSteps>{
      {7, 0.12905322500000693, 0.1491568658000034, 0.8317236510000043},
      {10, 0.13642547050000076, 0.14275712424999795, 1.2457684530000108},
      {3, 0.12295577800000501, 0.13387323160000336, 0.3467309769999929}};
  return *kWindows;
}

TEST(PoolSteps, TheGoldenRecordsLeaveThePercentileOpen) {
  const PooledSteps pooled = PoolSteps(GoldenWindows());
  // 0.145 to 0.155 prints as 0.15, and both it and 0.14 are possible.
  EXPECT_NEAR(pooled.p95.low_s, 0.14308, 1e-5);
  EXPECT_NEAR(pooled.p95.high_s, 0.14959, 1e-5);
  EXPECT_TRUE(pooled.p95.is_estimate());
  EXPECT_NEAR(pooled.p50.low_s, 0.12905, 1e-5);
  EXPECT_NEAR(pooled.p50.high_s, 0.13643, 1e-5);
  EXPECT_NEAR(pooled.p50.value_s, 0.13458, 1e-5);
}

// Two runs of twenty steps with the golden windows' percentiles and sums to the
// last digits, whose summaries differ: no reader of records can tell them
// apart.
TEST(PoolSteps, TwoRunsWithTheGoldenRecordsPrintDifferently) {
  const auto run = [](double fifth_of_first) {
    const auto& windows = GoldenWindows();
    std::vector<std::vector<double>> times(3);
    // Around the fixed percentiles, each sum is met by the shortest steps.
    const double first_p95 = windows[0].p95_s;
    const double last = (first_p95 - 0.3 * fifth_of_first) / 0.7;
    times[0] = {0,   0, 0, windows[0].p50_s, fifth_of_first, fifth_of_first,
                last};
    const double ninth = 0.142;
    const double tenth = (windows[1].p95_s - 0.45 * ninth) / 0.55;
    times[1] = {0,     0,     0,     0,    0.136, 2 * windows[1].p50_s - 0.136,
                0.137, 0.137, ninth, tenth};
    const double third =
        windows[2].p50_s + (windows[2].p95_s - windows[2].p50_s) / 0.9;
    times[2] = {0, windows[2].p50_s, third};
    std::vector<double> all;
    for (size_t i = 0; i < 3; ++i) {
      double rest = *windows[i].total_s;
      size_t zeros = 0;
      for (const double time : times[i]) {
        rest -= time;
        zeros += time == 0;
      }
      for (double& time : times[i]) {
        if (time == 0) time = rest / static_cast<double>(zeros);
      }
      const WindowSteps described = Describe(times[i]);
      EXPECT_NEAR(described.p50_s, windows[i].p50_s, 1e-12);
      EXPECT_NEAR(described.p95_s, windows[i].p95_s, 1e-12);
      EXPECT_NEAR(*described.total_s, *windows[i].total_s, 1e-12);
      all.insert(all.end(), times[i].begin(), times[i].end());
    }
    return Percentile(all, 95);
  };
  EXPECT_LT(run(0.132), 0.145);  // "0.14s"
  EXPECT_GT(run(0.149), 0.145);  // "0.15s"
}

TEST(PoolSteps, BoundsHoldWhateverTheStepsWere) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(1, 0.05);
  std::uniform_real_distribution<double> uniform(0, 1);
  const std::vector<std::function<double()>> kinds = {
      [&] { return std::abs(normal(random)); },
      [&] { return std::exp(normal(random) * 6); },
      [&] { return uniform(random) < 0.5 ? 1.0 : 1.3; },
      [&] { return uniform(random) < 0.03 ? 30.0 : 1.0; },
      [&] { return uniform(random); }};
  for (const auto& kind : kinds) {
    for (int run = 0; run < 300; ++run) {
      std::vector<WindowSteps> windows(2 + random() % 6);
      std::vector<double> all;
      for (WindowSteps& window : windows) {
        std::vector<double> times(1 + random() % 60);
        for (double& time : times) time = kind();
        window = Describe(times);
        if (random() % 3 == 0) window.total_s.reset();
        all.insert(all.end(), times.begin(), times.end());
      }
      const PooledSteps pooled = PoolSteps(windows);
      for (const auto& [percentile, percent] :
           {std::pair(pooled.p50, 50.0), std::pair(pooled.p95, 95.0)}) {
        const double truth = Percentile(all, percent);
        const double slack = 1e-9 * truth;
        ASSERT_LE(percentile.low_s, truth + slack) << "p" << percent;
        ASSERT_GE(percentile.high_s, truth - slack) << "p" << percent;
        ASSERT_LE(percentile.low_s, percentile.value_s);
        ASSERT_GE(percentile.high_s, percentile.value_s);
      }
    }
  }
}

TEST(PoolSteps, AreExactForOneWindowAndForEqualSteps) {
  const PooledSteps one = PoolSteps({GoldenWindows()[0]});
  EXPECT_EQ(one.p95.value_s, GoldenWindows()[0].p95_s);
  EXPECT_FALSE(one.p95.is_estimate());
  const WindowSteps equal = Describe(std::vector<double>(10, 0.25));
  const PooledSteps pooled = PoolSteps({equal, equal, equal});
  EXPECT_FALSE(pooled.p50.is_estimate());
  EXPECT_FALSE(pooled.p95.is_estimate());
  EXPECT_DOUBLE_EQ(pooled.p95.value_s, 0.25);
}

TEST(PoolSteps, TakesWhatNoProgramWouldWrite) {
  EXPECT_EQ(PoolSteps({}).p50.value_s, 0);
  EXPECT_EQ(PoolSteps({WindowSteps{}, WindowSteps{}}).p95.value_s, 0);
  // A sum, or an order, that no steps have.
  for (const WindowSteps& odd :
       {WindowSteps{10, 1, 2, 0.5}, WindowSteps{10, 2, 1, 15},
        WindowSteps{-4, 1, 2, 3}, WindowSteps{int64_t{1} << 60, 1, 2, 3},
        WindowSteps{2, 1, 1, HUGE_VAL}, WindowSteps{1, 3, 4, 5}}) {
    const PooledSteps pooled = PoolSteps({odd, WindowSteps{5, 1, 1, 5}});
    EXPECT_TRUE(std::isfinite(pooled.p50.value_s));
    EXPECT_TRUE(std::isfinite(pooled.p95.value_s));
  }
}

TEST(PoolSteps, ManyWindowsAreAnEstimateWithoutBounds) {
  std::vector<WindowSteps> windows(5000, WindowSteps{300, 1, 1.09, 300});
  const PooledSteps pooled = PoolSteps(windows);
  EXPECT_NEAR(pooled.p50.value_s, 1, 1e-3);
  EXPECT_NEAR(pooled.p95.value_s, 1.09, 1e-3);
  EXPECT_TRUE(pooled.p95.is_estimate());
  EXPECT_TRUE(std::isinf(pooled.p95.high_s));
}

}  // namespace
}  // namespace firstframe
