// What trace_diff says of traces that FastVideo's own hook wrote.

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/activation/compare_testing.h"
#include "lib/activation/python_json.h"

namespace firstframe {
namespace {

using testing::Compare;
using testing::CompareText;
using testing::FirstOf;
using testing::GoldenTrace;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CompareGolden, Float32OnTwoDevicesIsTheSame) {
  const auto c = Compare(GoldenTrace("cpu_fp32"), GoldenTrace("gpu_fp32"));
  EXPECT_EQ(c->result.verdict, Verdict::kSame) << Explain(c->result);
  EXPECT_THAT(c->result.trouble, IsEmpty());
  EXPECT_EQ(c->result.alignment.pairs.size(), 461u);
  EXPECT_LT(c->result.divergence.worst_coherent, 1e-6);
}

TEST(CompareGolden, Float32AgainstFloat64IsTheSame) {
  EXPECT_EQ(
      Compare(GoldenTrace("cpu_fp32"), GoldenTrace("cpu_fp64"))->result.verdict,
      Verdict::kSame);
}

TEST(CompareGolden, BFloat16DriftsWithinItsFloor) {
  const auto c = Compare(GoldenTrace("gpu_fp32"), GoldenTrace("gpu_bf16"));
  EXPECT_EQ(c->result.verdict, Verdict::kSame) << Explain(c->result);
  EXPECT_GT(c->result.divergence.worst_coherent, 1e-3);
  // As float32 the drift is a divergence: the floor is what explains it.
  CompareOptions strict;
  strict.divergence.profile = ThresholdProfile::kFp32;
  EXPECT_EQ(Compare(GoldenTrace("gpu_fp32"), GoldenTrace("gpu_bf16"), strict)
                ->result.verdict,
            Verdict::kDiffer);
}

TEST(CompareGolden, NamesTheConvolutionThatWasScaled) {
  for (const char* other : {"cpu_fp32", "gpu_fp32", "cpu_fp64", "gpu_bf16"}) {
    SCOPED_TRACE(other);
    const auto c =
        Compare(GoldenTrace(other), GoldenTrace("gpu_fp32_bug_conv1_2pct"));
    EXPECT_EQ(c->result.verdict, Verdict::kDiffer);
    EXPECT_EQ(FirstOf(c->result), "decoder.up_blocks.1.resnets.0.conv1");
    const auto back =
        Compare(GoldenTrace("gpu_fp32_bug_conv1_2pct"), GoldenTrace(other));
    EXPECT_EQ(FirstOf(back->result), "decoder.up_blocks.1.resnets.0.conv1");
  }
}

TEST(CompareGolden, StopsEarlyWithTheSameAnswer) {
  CompareOptions options;
  options.first_only = true;
  const auto c = Compare(GoldenTrace("gpu_fp32"),
                         GoldenTrace("gpu_fp32_bug_conv1_2pct"), options);
  EXPECT_EQ(FirstOf(c->result), "decoder.up_blocks.1.resnets.0.conv1");
}

TEST(CompareGolden, ATraceIsIdenticalToItself) {
  for (const char* name : {"cpu_fp32", "gpu_bf16"}) {
    EXPECT_EQ(Compare(GoldenTrace(name), GoldenTrace(name))->result.verdict,
              Verdict::kIdentical);
  }
  CompareOptions exact;
  exact.divergence.profile = ThresholdProfile::kExact;
  EXPECT_EQ(Compare(GoldenTrace("cpu_fp32"), GoldenTrace("gpu_fp32"), exact)
                ->result.verdict,
            Verdict::kDiffer);
}

TEST(CompareGolden, EveryModuleIsFoundWhenItIsTheFirstToChange) {
  // Property: 2 % on any one record's statistics is named exactly.
  const std::string golden(GoldenTrace("cpu_fp32").text());
  const std::vector<std::string> lines =
      absl::StrSplit(golden, '\n', absl::SkipEmpty());
  for (size_t i = 1; i < lines.size(); i += 23) {
    std::vector<std::string> changed = lines;
    for (size_t k = i; k < lines.size(); ++k) {
      const size_t at = lines[k].find("\"abs_mean\": ") + 12;
      const size_t end = lines[k].find(',', at);
      std::string number;
      AppendPythonFloat(
          static_cast<float>(std::stod(lines[k].substr(at, end - at)) * 1.02),
          &number);
      changed[k].replace(at, end - at, number);
    }
    const auto c = CompareText(golden, absl::StrJoin(changed, "\n") + "\n");
    ASSERT_TRUE(c->result.divergence.first) << i;
    EXPECT_EQ(c->result.alignment.PairNumber(*c->result.divergence.first), i);
  }
}

}  // namespace
}  // namespace firstframe
