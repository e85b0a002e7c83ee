#include "lib/activation/pair_evidence.h"

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/activation_tracer.h"
#include "lib/activation/compare_testing.h"
#include "lib/activation/trace_stat.h"
#include "lib/stats/compute.h"
#include "lib/tensor/tensor.h"

namespace firstframe {
namespace {

using testing::CompareText;
using ::testing::HasSubstr;

std::string LineOf(const std::vector<float>& values) {
  const auto stats =
      ParseTraceStats(
          "abs_mean,sum,min,max,mean,std,shape,dtype,numel,rms,zero,sk,samp,"
          "exp_hist")
          .stats;
  const Shape shape = {static_cast<int64_t>(values.size())};
  const TensorView view = {
      DType::kF32, shape,
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()),
                          values.size() * sizeof(float))};
  TraceRecordKeys keys;
  keys.module = "m";
  return FormatTraceRecord(
             keys, stats,
             *ComputeTensorStats(view, {.request = RequestFor(stats)}),
             DType::kF32, shape) +
         "\n";
}

PairEvidence Evidence(const std::vector<float>& a,
                      const std::vector<float>& b) {
  const auto c = CompareText(LineOf(a), LineOf(b));
  const Alignment& al = c->result.alignment;
  return EvidenceOf(al.a, al.pairs[0].a, al.b, al.pairs[0].b);
}

std::vector<float> Normal(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// Against what the whole tensors say.
TEST(EvidenceOf, EstimatesWhatTheTensorsSay) {
  int covered = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const std::vector<float> a = Normal(20000, seed);
    const std::vector<float> noise = Normal(a.size(), 1000 + seed);
    std::vector<float> b(a.size());
    double dd = 0, aa = 0, bb = 0, ab = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      b[i] = 1.02f * a[i] + 0.05f * noise[i];
      const double d = double{a[i]} - b[i];
      dd += d * d, aa += double{a[i]} * a[i], bb += double{b[i]} * b[i];
      ab += double{a[i]} * b[i];
    }
    const PairEvidence e = Evidence(a, b);
    ASSERT_TRUE(e.relative_error.has_value());
    const double truth = std::sqrt(dd / aa);
    EXPECT_NEAR(e.relative_error->estimate, truth, 0.4 * truth);
    covered +=
        e.relative_error->low <= truth && truth <= e.relative_error->high;
    EXPECT_NEAR(*e.sqnr_db, -20 * std::log10(truth), 3);
    EXPECT_NEAR(*e.rel_diff, dd / (aa + bb), 0.8 * dd / (aa + bb));
    const double cosine = 1 - ab / std::sqrt(aa * bb);
    EXPECT_NEAR(*e.one_minus_cosine, cosine, 0.9 * cosine);
  }
  EXPECT_GE(covered, 34);  // 95 % of 40, and room for chance
}

TEST(EvidenceOf, SamplesTellSignsAndUlps) {
  const std::vector<float> a = Normal(1000, 1);
  std::vector<float> flipped = a, nudged = a;
  for (float& value : flipped) value = -value;
  for (float& value : nudged) value = std::nextafter(value, 10.0f);
  const PairEvidence signs = Evidence(a, flipped);
  EXPECT_EQ(signs.samples, 32);
  EXPECT_EQ(signs.samples_of_other_sign, 32);
  EXPECT_NEAR(*signs.sample_median, 2, 1e-6);
  EXPECT_THAT(DescribeEvidence(signs), HasSubstr("32 of 32 samples of the "
                                                 "other sign"));
  const PairEvidence ulps = Evidence(a, nudged);
  EXPECT_EQ(ulps.samples_within_ulp, 32);
  EXPECT_EQ(ulps.samples_equal, 0);
  EXPECT_THAT(DescribeEvidence(ulps), HasSubstr("within one unit in the last "
                                                "place"));
}

TEST(EvidenceOf, HistogramsTellWhatMoved) {
  const std::vector<float> a = Normal(1000, 1);
  std::vector<float> b = a;
  for (size_t i = 0; i < b.size(); i += 4) b[i] = 0;
  const PairEvidence e = Evidence(a, b);
  EXPECT_NEAR(*e.exponents_moved, 0.25, 0.01);
  EXPECT_NEAR(*e.zeros_left, 0, 1e-9);
  EXPECT_NEAR(*e.zeros_right, 0.25, 1e-9);
  EXPECT_THAT(DescribeEvidence(e), HasSubstr("zeros 0 against 25 %"));
}

TEST(EvidenceOf, EqualTensorsHaveNoError) {
  const std::vector<float> a = Normal(1000, 1);
  const PairEvidence e = Evidence(a, a);
  EXPECT_EQ(e.relative_error->estimate, 0);
  EXPECT_FALSE(e.sqnr_db.has_value());
  EXPECT_EQ(*e.one_minus_cosine, 0);
  EXPECT_EQ(DescribeEvidence(e), "");
}

}  // namespace
}  // namespace firstframe
