#include "lib/startup/output_facts.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

FloatTensor Ramp(int64_t count) {
  FloatTensor tensor = {.shape = {1, 1, 1, 1, count}};
  for (int64_t i = 0; i < count; ++i) {
    tensor.values.push_back(static_cast<float>(i % 1001) / 1000 - 0.25f);
  }
  return tensor;
}

TEST(DescribeOutput, IsTheSameForAnyNumberOfThreads) {
  const FloatTensor ramp = Ramp(1001 * 999);
  SetComputeThreads(1);
  const OutputFacts alone = DescribeOutput(ramp);
  EXPECT_EQ(alone.shape, ramp.shape);
  EXPECT_TRUE(alone.is_finite);
  EXPECT_FLOAT_EQ(alone.min, -0.25);
  EXPECT_FLOAT_EQ(alone.max, 0.75);
  EXPECT_NEAR(alone.mean, 0.25, 1e-6);
  SetComputeThreads(3);
  EXPECT_EQ(DescribeOutput(ramp).mean, alone.mean);
  SetComputeThreads(0);
}

TEST(DescribeOutput, SeesWhatIsNotFiniteWhereverItIs) {
  for (const float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    for (const int64_t at : {0, 65535, 65536, 99'999}) {
      FloatTensor ramp = Ramp(100'000);
      ramp.values[at] = bad;
      const OutputFacts facts = DescribeOutput(ramp);
      EXPECT_FALSE(facts.is_finite) << bad << " at " << at;
      EXPECT_EQ(std::isnan(facts.mean), std::isnan(bad));
      if (std::isnan(bad)) {
        EXPECT_FLOAT_EQ(facts.max, 0.75);
      }
    }
  }
}

}  // namespace
}  // namespace firstframe
