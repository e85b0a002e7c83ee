#include "lib/wan_vae/cpu_kernels.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "lib/host/cpu_budget.h"
#include "lib/wan_vae/parallel.h"
#include "lib/wan_vae/synthetic.h"

namespace firstframe {
namespace {

std::vector<float> Values(int64_t count) {
  std::vector<float> values(count);
  FillSynthetic("values", {count}, 0, absl::MakeSpan(values));
  return values;
}

double SiluInDouble(double x) { return x / (1 + std::exp(-x)); }

TEST(Silu, IsWithinTwoUlps) {
  std::vector<float> x;
  for (float v = -100; v < 100; v += 0.01f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f, 1e30f, 3e38f});
  std::vector<float> y = x;
  Silu(y.data(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = SiluInDouble(x[i]);
    EXPECT_NEAR(y[i], expected, std::abs(expected) * 2.4e-7 + 1e-35) << x[i];
  }
}

TEST(Silu, KeepsNan) {
  std::vector<float> x(5, std::numeric_limits<float>::quiet_NaN());
  Silu(x.data(), x.size());
  for (float value : x) EXPECT_TRUE(std::isnan(value));
}

TEST(NormalizeRows, MatchesTheFormulaForEveryWidth) {
  for (int64_t channels : {1, 2, 3, 15, 16, 17, 96, 384}) {
    for (bool silu : {false, true}) {
      const int64_t rows = 37;
      const std::vector<float> x = Values(rows * channels);
      std::vector<float> gamma(channels), y(x.size());
      std::iota(gamma.begin(), gamma.end(), 0.5f);
      NormalizeRows(x.data(), rows, channels, gamma.data(), silu, y.data());
      for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
          sum += std::pow(double{x[r * channels + c]}, 2);
        }
        for (int64_t c = 0; c < channels; ++c) {
          double expected = x[r * channels + c] / std::sqrt(sum) *
                            std::sqrt(double(channels)) * gamma[c];
          const double size = std::abs(expected);
          if (silu) expected = SiluInDouble(expected);
          EXPECT_NEAR(y[r * channels + c], expected, 1e-6 * (1 + size));
        }
      }
    }
  }
}

TEST(NormalizeRows, ZeroRowsStayZero) {
  std::vector<float> x(48, 0.0f), gamma(16, 1.0f);
  NormalizeRows(x.data(), 3, 16, gamma.data(), false, x.data());
  for (float value : x) EXPECT_EQ(value, 0.0f);
}

TEST(SoftmaxRows, SumsToOneAndSurvivesLargeScores) {
  std::vector<float> x = {1, 2, 3, 1000, 999, -1000};
  SoftmaxRows(x.data(), 2, 3, 0.5f);
  const double total = std::exp(-1.0) + std::exp(-0.5) + 1;
  EXPECT_NEAR(x[0], std::exp(-1.0) / total, 1e-7);
  EXPECT_NEAR(x[2], 1 / total, 1e-7);
  EXPECT_NEAR(x[3] + x[4] + x[5], 1.0, 1e-6);
  EXPECT_NEAR(x[4] / x[3], std::exp(-0.5), 1e-6);
}

TEST(UpsampleNearest, RepeatsAndUnfoldsTime) {
  // Two frames from one, 1 x 2, three channels: channel halves are the frames.
  const std::vector<float> x = {0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15};
  std::vector<float> y(2 * 2 * 4 * 3);
  UpsampleNearest(x.data(), 1, 1, 2, 3, 2, y.data());
  const std::vector<float> expected = {
      0,  1,  2,  0,  1,  2,  3,  4,  5,  3,  4,  5,   //
      0,  1,  2,  0,  1,  2,  3,  4,  5,  3,  4,  5,   //
      10, 11, 12, 10, 11, 12, 13, 14, 15, 13, 14, 15,  //
      10, 11, 12, 10, 11, 12, 13, 14, 15, 13, 14, 15};
  EXPECT_EQ(y, expected);
}

TEST(Transposes, AreInverses) {
  for (int64_t channels : {1, 3, 16, 130}) {
    const int64_t outer = 2, positions = 197;
    const std::vector<float> x = Values(outer * positions * channels);
    std::vector<float> first(x.size()), last(x.size());
    ToChannelsFirst(x.data(), outer, positions, channels, channels * positions,
                    positions, first.data());
    EXPECT_EQ(first[positions * (channels - 1) + 5],
              x[5 * channels + channels - 1]);
    ToChannelsLast(first.data(), outer, positions, channels,
                   channels * positions, positions, last.data());
    EXPECT_EQ(last, x);
  }
}

TEST(CopyBlocks, KeepsStrides) {
  const std::vector<float> x = Values(400000);
  std::vector<float> y(x.size(), -1.0f);
  CopyBlocks(x.data(), 150000, y.data(), 180000, 2, 140001);
  EXPECT_EQ(y[140000], x[140000]);
  EXPECT_EQ(y[140001], -1.0f);
  EXPECT_EQ(y[180000], x[150000]);
  EXPECT_EQ(y[320000], x[290000]);
}

TEST(ComputeThreads, AreNoMoreThanTheProcessGets) {
  SetComputeThreads(3);
  EXPECT_EQ(ComputeThreads(), 3);  // who asks gets what was asked for
  SetComputeThreads(0);
  EXPECT_LE(ComputeThreads(), CpuBudget());
  // Also on a thread that has set nothing.
  int elsewhere = 0;
  std::thread([&] { elsewhere = ComputeThreads(); }).join();
  EXPECT_EQ(elsewhere, ComputeThreads());
}

TEST(ParallelFor, CoversEachIndexOnce) {
  for (int threads : {1, 2, 5}) {
    SetComputeThreads(threads);
    for (int64_t count : {0, 1, 4, 5, 1001}) {
      for (int64_t grain : {1, 7, 5000}) {
        std::vector<int> hits(count);
        ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++hits[i];
        });
        EXPECT_EQ(hits, std::vector<int>(count, 1));
      }
    }
  }
  SetComputeThreads(0);
}

}  // namespace
}  // namespace firstframe
