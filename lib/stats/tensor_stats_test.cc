#include "lib/stats/tensor_stats.h"

#include <cmath>
#include <limits>
#include <set>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TensorStats Of(int64_t n, double mean, double m2) {
  TensorStats stats;
  stats.numel = n;
  stats.mean = mean;
  stats.m2 = m2;
  stats.sum = mean * n;
  stats.min = stats.max = static_cast<float>(mean);
  stats.amax_index = 0;
  return stats;
}

TEST(MergeStats, FollowsChan) {
  // {1, 3} and {5, 7, 9}
  const TensorStats merged = MergeStats(Of(2, 2, 2), Of(3, 7, 8));
  EXPECT_EQ(merged.numel, 5);
  EXPECT_DOUBLE_EQ(merged.mean, 5);
  EXPECT_DOUBLE_EQ(merged.m2, 40);
  EXPECT_DOUBLE_EQ(merged.sum, 25);
}

TEST(MergeStats, AnEmptyPartChangesNothing) {
  const TensorStats merged = MergeStats(TensorStats(), Of(3, 7, 8));
  EXPECT_EQ(merged.mean, 7);
  EXPECT_EQ(merged.min, 7);
  EXPECT_EQ(MergeStats(Of(3, 7, 8), TensorStats()).m2, 8);
}

TEST(TorchStats, PropagateWhatIsNotFinite) {
  TensorStats stats = Of(4, 2, 1);
  stats.inf_pos = 1;
  EXPECT_EQ(TorchSum(stats), INFINITY);
  EXPECT_EQ(TorchAbsMean(stats), INFINITY);
  EXPECT_EQ(TorchMean(stats), INFINITY);
  EXPECT_EQ(TorchMax(stats), INFINITY);
  EXPECT_EQ(TorchMin(stats), 2);
  EXPECT_TRUE(std::isnan(TorchStd(stats)));
  stats.inf_neg = 1;
  EXPECT_TRUE(std::isnan(TorchSum(stats)));
  EXPECT_EQ(TorchAbsMean(stats), INFINITY);
  EXPECT_EQ(TorchMin(stats), -INFINITY);
  stats.nan = 1;
  EXPECT_TRUE(std::isnan(TorchAbsMean(stats)));
  EXPECT_TRUE(std::isnan(TorchMax(stats)));
}

TEST(TorchStats, OfOneAndOfNoElement) {
  EXPECT_TRUE(std::isnan(TorchStd(Of(1, 2, 0))));
  EXPECT_EQ(TorchMean(Of(1, 2, 0)), 2);
  EXPECT_EQ(TorchSum(TensorStats()), 0);
  EXPECT_TRUE(std::isnan(TorchMean(TensorStats())));
  EXPECT_TRUE(std::isnan(TorchAbsMean(TensorStats())));
}

TEST(TorchStats, ASumPastFloat32IsInfiniteAsInPyTorch) {
  TensorStats stats = Of(2, 3e38, 0);
  stats.abs_sum = 6e38;
  EXPECT_EQ(TorchSum(stats), INFINITY);
  EXPECT_EQ(TorchMean(stats), INFINITY);
  EXPECT_EQ(TorchAbsMean(stats), INFINITY);
}

TEST(SampleIndex, StaysInsideAndSpreads) {
  std::set<int64_t> seen;
  for (int k = 0; k < kNumSamples; ++k) {
    const int64_t index = SampleIndex(k, 1000003);
    EXPECT_GE(index, 0);
    EXPECT_LT(index, 1000003);
    seen.insert(index);
    EXPECT_EQ(SampleIndex(k, 1), 0);
  }
  EXPECT_GE(seen.size(), 31u);
}

}  // namespace
}  // namespace firstframe
