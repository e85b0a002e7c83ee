#include "lib/trace/trace_diff.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

TraceSummary MakeRun(double p50, double mad, int64_t count, int64_t kernel_ns) {
  TraceSummary summary;
  RegionSummary region;
  region.name = "decode";
  region.count = count;
  region.p50_ns = p50;
  region.mad_ns = mad;
  region.busy_ns = static_cast<int64_t>(p50) * count;
  summary.regions.push_back(region);
  summary.work.push_back({.name = "k",
                          .count = 100,
                          .total_ns = kernel_ns * 100,
                          .deviation_ns = 10});
  return summary;
}

DiffVerdict Verdict(const std::vector<DiffRow>& rows, const char* what) {
  for (const DiffRow& row : rows) {
    if (row.what == what) return row.verdict;
  }
  return DiffVerdict::kOnlyInA;
}

TEST(TraceDiff, ATraceIsTheSameAsItself) {
  const TraceSummary run = MakeRun(1000, 50, 20, 500);
  const auto rows = DiffTraces(run, run, {});
  EXPECT_EQ(rows.size(), 3u);
  EXPECT_FALSE(Differs(rows));
}

TEST(TraceDiff, NoiseHidesSmallChanges) {
  // 8 % apart with a spread of 50 %: noise. With a spread of 1 %: slower.
  EXPECT_EQ(Verdict(DiffTraces(MakeRun(1000, 500, 5, 1),
                               MakeRun(1080, 500, 5, 1), {}),
                    "region"),
            DiffVerdict::kSame);
  EXPECT_EQ(Verdict(DiffTraces(MakeRun(1000, 10, 20, 1),
                               MakeRun(1080, 10, 20, 1), {}),
                    "region"),
            DiffVerdict::kSlower);
  EXPECT_EQ(Verdict(DiffTraces(MakeRun(1080, 10, 20, 1),
                               MakeRun(1000, 10, 20, 1), {}),
                    "region"),
            DiffVerdict::kFaster);
  EXPECT_EQ(
      Verdict(DiffTraces(MakeRun(1000, 0, 1, 1), MakeRun(2000, 0, 1, 1), {}),
              "region"),
      DiffVerdict::kUnknown);
}

TEST(TraceDiff, KernelsByMean) {
  const auto rows =
      DiffTraces(MakeRun(1, 0, 5, 500), MakeRun(1, 0, 5, 600), {});
  EXPECT_EQ(Verdict(rows, "kernel"), DiffVerdict::kSlower);
  EXPECT_TRUE(Differs(rows));
  EXPECT_FALSE(Differs(DiffTraces(MakeRun(1, 0, 5, 500), MakeRun(1, 0, 5, 600),
                                  {.threshold = 0.25})));
}

TEST(TraceDiff, OneSided) {
  TraceSummary b = MakeRun(1000, 1, 5, 1);
  b.regions[0].name = "encode";
  const auto rows = DiffTraces(MakeRun(1000, 1, 5, 1), b, {});
  EXPECT_TRUE(Differs(rows));
  std::ostringstream out;
  WriteDiffText(rows, out);
  EXPECT_THAT(out.str(), HasSubstr("only_in_a"));
  EXPECT_THAT(out.str(), HasSubstr("only_in_b"));
  EXPECT_THAT(DiffJson(b, b, rows), HasSubstr("\"noise_ns\": null"));
}

}  // namespace
}  // namespace firstframe
