#include "lib/activation/level_history.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(RecentValues, MedianOfTheLastSix) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(0, 1);
  RecentValues recent;
  EXPECT_EQ(recent.Median(), 0);
  EXPECT_EQ(recent.last(), 0);
  std::vector<float> all;
  for (int i = 0; i < 500; ++i) {
    // Equal values, too.
    all.push_back(i % 7 == 0 ? 0.5f : uniform(random));
    recent.Push(all.back());
    std::vector<float> window(all.end() - std::min<int>(6, i + 1), all.end());
    std::sort(window.begin(), window.end());
    const size_t n = window.size();
    const double median =
        n % 2 == 1 ? window[n / 2] : 0.5 * (window[n / 2] + window[n / 2 - 1]);
    EXPECT_EQ(recent.Median(), median) << i;
    EXPECT_EQ(recent.last(), all.back());
    EXPECT_EQ(recent.IsEnough(), i >= 2);
  }
}

constexpr double kFloor = 1e-3;

class History : public ::testing::Test {
 protected:
  // One pass over `blocks` modules of template 0, each showing `error`.
  void Pass(uint32_t blocks, int32_t step, float error) {
    for (uint32_t block = 0; block < blocks; ++block) {
      Row(block, step, error);
    }
  }
  ExpectedLevel Row(uint32_t block, int32_t step, float error) {
    history_.Begin(0, block, step);
    const ExpectedLevel expected =
        history_.Expect(kCoherent, kFloor, 1, 0, false);
    history_.Push(error, -1);
    return expected;
  }
  LevelHistory history_{2, 50};
};

TEST_F(History, GrowsWithDepthFromTheFloor) {
  EXPECT_DOUBLE_EQ(Row(0, 0, 0).level, kFloor);
  EXPECT_FALSE(Row(1, 0, 0).from_history);
  EXPECT_DOUBLE_EQ(Row(2, 0, 0).level, kFloor * std::sqrt(3));
  EXPECT_TRUE(Row(3, 0, 0).from_history);
  history_.Begin(0, 4, 0);
  EXPECT_DOUBLE_EQ(history_.Expect(kCoherent, kFloor, 1, 0, true).level,
                   kFloor);
  EXPECT_TRUE(
      LevelHistory(1, 1).Expect(kCoherent, kFloor, 1, 0, true).from_history);
  EXPECT_DOUBLE_EQ(history_.Expect(kCoherent, kFloor, 1, 0.5, true).level, 0.5);
}

TEST_F(History, TakesTheMedianOfEarlierDepths) {
  Pass(10, 0, 0.05f);
  EXPECT_FLOAT_EQ(Row(10, 0, 0.05f).level, 0.05f);
}

// What deep blocks showed in one step says nothing of the first blocks of the
// next; what the first blocks showed does.
TEST_F(History, BeginsAnewAtEachStep) {
  for (uint32_t block = 0; block < 40; ++block) Row(block, 0, 0.001f * block);
  const ExpectedLevel shallow = Row(1, 1, 0.001f);
  EXPECT_LT(shallow.level, 0.01);
}

// Wan's traces have no steps: the first block once more is another pass.
TEST_F(History, BeginsAnewWhenTheModulesRecur) {
  for (uint32_t block = 0; block < 40; ++block) {
    Row(block, kNoStep, 0.001f * block);
  }
  Row(0, kNoStep, 0);
  EXPECT_LT(Row(1, kNoStep, 0.001f).level, 0.01);
  // A module called twice in a pass begins none.
  Row(2, kNoStep, 0.3f);
  Row(2, kNoStep, 0.3f);
  Row(3, kNoStep, 0.3f);
  EXPECT_NEAR(Row(4, kNoStep, 0.3f).level, 0.3, 0.01);
}

TEST_F(History, KnowsWhatTheModuleShowedAtEarlierSteps) {
  // Block 5 always stands out; the others do not.
  for (int32_t step = 0; step < 4; ++step) {
    for (uint32_t block = 0; block < 10; ++block) {
      const ExpectedLevel expected =
          Row(block, step, block == 5 ? 0.5f : 0.002f);
      if (step == 0) {
        EXPECT_LT(expected.level, 0.01) << block;
      } else if (block == 5) {
        EXPECT_NEAR(expected.level, 0.5, 0.1) << step;
      } else {
        EXPECT_LT(expected.level, 0.01) << step << " " << block;
      }
    }
  }
}

TEST_F(History, AllowsForGrowthFromStepToStep) {
  // Every module's error doubles at every step.
  float error = 0.001f;
  for (int32_t step = 0; step < 5; ++step) {
    for (uint32_t block = 0; block < 8; ++block) {
      const ExpectedLevel expected = Row(block, step, error);
      if (step == 4 && block > 2) {
        EXPECT_GE(expected.level, error * 0.99);
        EXPECT_LE(expected.level, error * 1.01);
      }
    }
    error *= 2;
  }
}

}  // namespace
}  // namespace firstframe
