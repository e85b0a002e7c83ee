#include "lib/stats/compute.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/stats/mix.h"
#include "lib/tensor/convert.h"
#include "lib/tensor/host_tensor.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

constexpr StatsRequest kAll = {
    .hashes = true, .sketch = true, .exponents = true, .samples = true};

template <typename T>
TensorView ViewOf(DType dtype, const std::vector<T>& values) {
  return {dtype,
          {static_cast<int64_t>(values.size())},
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                              values.size() * sizeof(T))};
}

TensorStats Compute(const TensorView& view, int num_threads = 1,
                    int64_t index_offset = 0) {
  return ComputeTensorStats(view, {.request = kAll,
                                   .num_threads = num_threads,
                                   .index_offset = index_offset})
      .value();
}

std::vector<float> Normal(int64_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.25f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// The definition, one element at a time, straight from the format's page.
TensorStats Reference(const std::vector<float>& values) {
  TensorStats s;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t group = i / 8;
    const uint64_t hash = GroupHash(group);
    uint32_t bits;
    std::memcpy(&bits, &values[i], 4);
    if (std::isnan(values[i])) bits = 0x7FC00000u;
    s.h_set += SetMix(bits);
    s.h_pos += (hash | 1) * (uint64_t{LaneFactor(i % 8)} * bits);
    ++s.numel;
    if (std::isnan(values[i])) ++s.nan;
    if (std::isinf(values[i])) ++(values[i] > 0 ? s.inf_pos : s.inf_neg);
    if (!std::isfinite(values[i])) continue;
    const double x = values[i];
    s.zero += x == 0;
    s.sum += x;
    s.abs_sum += std::abs(x);
    s.sketch[(group % 64) ^ TileRotation(group / 64)] +=
        (GroupSigns(hash) >> (i % 2 * 16 + i % 8 / 2) & 1) ? -x : x;
    ++s.exponents[bits >> 23 & 0xFF];
    if (s.amax_index < 0 || std::abs(values[i]) > s.amax) {
      s.amax = std::abs(values[i]), s.amax_index = i;
    }
    s.min = s.finite() == 1 ? values[i] : std::min(s.min, values[i]);
    s.max = s.finite() == 1 ? values[i] : std::max(s.max, values[i]);
  }
  if (s.finite() > 0) s.mean = s.sum / s.finite();
  for (const float x : values) {
    if (std::isfinite(x)) s.m2 += (x - s.mean) * (x - s.mean);
  }
  return s;
}

void ExpectNear(const TensorStats& got, const TensorStats& want) {
  EXPECT_EQ(got.numel, want.numel);
  EXPECT_EQ(got.nan, want.nan);
  EXPECT_EQ(got.inf_pos, want.inf_pos);
  EXPECT_EQ(got.inf_neg, want.inf_neg);
  EXPECT_EQ(got.zero, want.zero);
  EXPECT_EQ(got.min, want.min);
  EXPECT_EQ(got.max, want.max);
  EXPECT_EQ(got.amax, want.amax);
  EXPECT_EQ(got.amax_index, want.amax_index);
  EXPECT_EQ(got.h_set, want.h_set);
  EXPECT_EQ(got.h_pos, want.h_pos);
  EXPECT_EQ(got.exponents, want.exponents);
  const double scale = 1e-12 * (1 + want.abs_sum);
  EXPECT_NEAR(got.sum, want.sum, scale);
  EXPECT_NEAR(got.abs_sum, want.abs_sum, scale);
  EXPECT_NEAR(got.m2, want.m2, 1e-11 * (1 + want.m2));
  for (int j = 0; j < kSketchSize; ++j) {
    EXPECT_NEAR(got.sketch[j], want.sketch[j],
                2e-6 * std::sqrt(want.m2 + want.sum * want.mean + 1));
  }
}

TEST(ComputeTensorStats, AgreesWithTheDefinition) {
  for (const int64_t count : {0, 1, 5, 8, 513, 4099, 70001}) {
    SCOPED_TRACE(count);
    const std::vector<float> values = Normal(count);
    ExpectNear(Compute(ViewOf(DType::kF32, values)), Reference(values));
  }
}

TEST(ComputeTensorStats, SetsNonFiniteElementsApart) {
  std::vector<float> values = Normal(5000);
  values[0] = values[4999] = std::numeric_limits<float>::quiet_NaN();
  values[17] = INFINITY;
  values[2048] = values[2049] = -INFINITY;
  values[100] = -0.0f;
  ExpectNear(Compute(ViewOf(DType::kF32, values)), Reference(values));
}

TEST(ComputeTensorStats, FindsTheLargestBehindNan) {
  const std::vector<float> values = {NAN, 0.0f, NAN};
  const TensorStats stats = Compute(ViewOf(DType::kF32, values));
  EXPECT_EQ(stats.amax, 0);
  EXPECT_EQ(stats.amax_index, 1);
  const std::vector<float> none = {NAN, INFINITY};
  EXPECT_EQ(Compute(ViewOf(DType::kF32, none)).amax_index, -1);
}

TEST(ComputeTensorStats, HasTheSameBitsForAnyNumberOfThreads) {
  const std::vector<float> values = Normal(3 * (1 << 20) + 12345);
  const TensorView view = ViewOf(DType::kF32, values);
  const TensorStats one = Compute(view);
  for (const int threads : {2, 3, 7}) {
    const TensorStats many = Compute(view, threads);
    EXPECT_EQ(std::memcmp(&one, &many, sizeof(one)), 0) << threads;
  }
}

TEST(ComputeTensorStats, ReadsEveryTypeAsFloat) {
  const std::vector<float> values = {0, 1, 2, 1, 0, 4, 8, 2, 1};
  for (const DTypeInfo& info : AllDTypes()) {
    SCOPED_TRACE(std::string(info.name));
    if (info.bits < 8 || info.dtype == DType::kC64 ||
        info.dtype == DType::kF8E8M0) {
      continue;
    }
    HostTensor tensor = *HostTensor::Create(info.dtype, {9});
    ASSERT_TRUE(
        ConvertFromFloat(values, info.dtype, tensor.mutable_bytes()).ok());
    const TensorStats stats = Compute(tensor.view());
    const bool is_bool = info.dtype == DType::kBool;
    EXPECT_EQ(stats.sum, is_bool ? 7 : 19);
    EXPECT_EQ(stats.max, is_bool ? 1 : 8);
    EXPECT_EQ(stats.zero, 2);
    EXPECT_NE(stats.h_set, 0u);
  }
}

TEST(ComputeTensorStats, HashesFloat64ByItsOwnBits) {
  const std::vector<double> a = {1.0, 2.0};
  const std::vector<double> b = {1.0, 2.0 + 4e-16};
  const TensorStats sa = Compute(ViewOf(DType::kF64, a));
  const TensorStats sb = Compute(ViewOf(DType::kF64, b));
  EXPECT_EQ(sa.sum, sb.sum);  // the same as float32
  EXPECT_NE(sa.h_set, sb.h_set);
  const std::vector<double> huge = {1e300};
  EXPECT_EQ(Compute(ViewOf(DType::kF64, huge)).inf_pos, 1);
}

TEST(ComputeTensorStats, TakesTheRealPartOfComplexNumbers) {
  const std::vector<float> pairs = {1, 100, 2, 200};
  TensorView view = ViewOf(DType::kF32, pairs);
  view.dtype = DType::kC64;
  view.shape = {2};
  EXPECT_EQ(Compute(view).sum, 3);
}

TEST(ComputeTensorStats, TellsAPermutationFromAChange) {
  std::vector<float> values = Normal(10000);
  const TensorStats before = Compute(ViewOf(DType::kF32, values));
  std::swap(values[3], values[9000]);
  const TensorStats swapped = Compute(ViewOf(DType::kF32, values));
  EXPECT_EQ(before.h_set, swapped.h_set);
  EXPECT_NE(before.h_pos, swapped.h_pos);
  std::swap(values[3], values[4]);  // within one group
  EXPECT_NE(Compute(ViewOf(DType::kF32, values)).h_pos, swapped.h_pos);
  values[5] = std::nextafter(values[5], 100.0f);
  EXPECT_NE(Compute(ViewOf(DType::kF32, values)).h_set, before.h_set);
}

TEST(ComputeTensorStats, PartsMergeToTheWhole) {
  const std::vector<float> values = Normal(50000);
  const std::vector<float> head(values.begin(), values.begin() + 20000);
  const std::vector<float> tail(values.begin() + 20000, values.end());
  const TensorStats whole = Compute(ViewOf(DType::kF32, values));
  const TensorStats merged =
      MergeStats(Compute(ViewOf(DType::kF32, head)),
                 Compute(ViewOf(DType::kF32, tail), 1, 20000));
  ExpectNear(merged, whole);
}

// The estimate of a difference: 60 seeds of dense noise, a scaled channel and a
// permutation must lie within what k = 64 allows.
TEST(Sketch, EstimatesTheNormOfADifference) {
  constexpr int64_t kCount = 1 << 16;
  const std::vector<float> base = Normal(kCount);
  const TensorStats a = Compute(ViewOf(DType::kF32, base));
  double sum = 0, squares = 0;
  constexpr int kSeeds = 60;
  for (int seed = 0; seed < kSeeds; ++seed) {
    std::vector<float> other = base;
    const std::vector<float> noise = Normal(kCount, 100 + seed);
    double norm = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      // every third seed: one channel of 512 alone
      if (seed % 3 == 1 && i % 512 != 77) continue;
      other[i] += 0.01f * noise[i];
      norm += double{other[i] - base[i]} * (other[i] - base[i]);
    }
    const TensorStats b = Compute(ViewOf(DType::kF32, other));
    double estimate = 0;
    for (int j = 0; j < kSketchSize; ++j) {
      estimate += (a.sketch[j] - b.sketch[j]) * (a.sketch[j] - b.sketch[j]);
    }
    const double ratio = std::sqrt(estimate / norm);
    EXPECT_GT(ratio, 0.6) << seed;
    EXPECT_LT(ratio, 1.45) << seed;
    sum += ratio;
    squares += ratio * ratio;
  }
  const double mean = sum / kSeeds;
  EXPECT_NEAR(mean, 1.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / kSeeds - mean * mean), 0.088, 0.04);
}

TEST(ComputeTensorStats, RefusesWhatItCannotRead) {
  const std::vector<float> values = {1, 2};
  TensorView view = ViewOf(DType::kF32, values);
  view.shape = {3};
  EXPECT_THAT(ComputeTensorStats(view, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found 8 bytes, expected 12")));
  view.shape = {2};
  EXPECT_THAT(
      ComputeTensorStats(view, {.request = kAll, .index_offset = 4}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("multiple of 8")));
  view.dtype = DType::kF6E2M3;
  EXPECT_THAT(ComputeTensorStats(view, {}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("F6")));
}

}  // namespace
}  // namespace firstframe
