// Every instruction set gives the same bits.

#include "lib/stats/chunk.h"

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe::internal {
namespace {

constexpr StatsRequest kAll = {
    .hashes = true, .sketch = true, .exponents = true};

TensorStats Compute(ChunkFunction function, const ChunkInput& input) {
  TensorStats stats;
  function(input, &stats);
  return stats;
}

void ExpectSameBits(const TensorStats& a, const TensorStats& b) {
  EXPECT_EQ(std::memcmp(&a.sum, &b.sum, 5 * sizeof(double)), 0)
      << a.sum << " " << b.sum << " " << a.m2 << " " << b.m2;
  EXPECT_EQ(a.zero, b.zero);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.amax_index, b.amax_index);
  EXPECT_EQ(a.h_set, b.h_set);
  EXPECT_EQ(a.h_pos, b.h_pos);
  EXPECT_EQ(a.sketch, b.sketch);
  EXPECT_EQ(a.exponents, b.exponents);
}

class ChunkOf : public ::testing::TestWithParam<int64_t> {};

TEST_P(ChunkOf, HasTheSameBitsOnEveryInstructionSet) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.5f, 3.0f);
  std::vector<float> values(GetParam());
  for (float& value : values) value = normal(random);
  for (size_t i = 7; i < values.size(); i += 11) values[i] = 0;
  for (const bool odd : {false, true}) {
    if (odd && values.size() > 5) {
      values[1] = NAN, values[3] = INFINITY, values.back() = -INFINITY;
    }
    const ChunkInput input = {values.data(), Source::kFloats, GetParam(), 512,
                              kAll};
    const TensorStats base = Compute(&ComputeChunkV2, input);
    ExpectSameBits(base, Compute(BestChunkFunction(), input));
    if (__builtin_cpu_supports("avx2")) {
      ExpectSameBits(base, Compute(&ComputeChunkV3, input));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, ChunkOf,
                         ::testing::Values(0, 1, 7, 8, 9, 511, 512, 2047, 2049,
                                           kChunkElements - 3, kChunkElements));

TEST(Chunk, ReadsEveryHalfExactly) {
  // All 65536 patterns, in blocks; the maximum of one finite element is itself.
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const uint16_t half = static_cast<uint16_t>(pattern);
    const TensorStats stats =
        Compute(BestChunkFunction(), {&half, Source::kF16, 1, 0, {}});
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 31) {
      EXPECT_EQ(stats.nan, fraction != 0);
      EXPECT_EQ(stats.inf_pos + stats.inf_neg, fraction == 0);
      continue;
    }
    const float magnitude = exponent == 0
                                ? std::ldexp(fraction, -24)
                                : std::ldexp(1024 + fraction, exponent - 25);
    EXPECT_EQ(stats.max, half >> 15 ? -magnitude : magnitude) << pattern;
    EXPECT_EQ(stats.amax, magnitude);
  }
}

}  // namespace
}  // namespace firstframe::internal
