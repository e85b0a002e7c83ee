#include "lib/metrics/perf_report.h"

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/utf8.h"
#include "lib/metrics/change_point.h"
#include "lib/metrics/median_ratio.h"
#include "lib/metrics/perf_report_text.h"

namespace firstframe {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RequestRecord Request(int64_t rank, double e2e_s, bool warmup = false) {
  RequestRecord record;
  record.rank = rank;
  record.warmup = warmup;
  record.e2e_s = e2e_s;
  record.stages.emplace_back("transformer",
                             SummarizeStage({e2e_s * 250, e2e_s * 250}));
  record.dit = DitThroughput{.tokens = 1,
                             .batch = 1,
                             .flops_per_fwd = 1e12,
                             .tflops = 2e12 / (e2e_s * 0.5) / 1e12,
                             .peak_tflops = 100};
  return record;
}

TEST(PerfReport, LeavesWarmupOutAndFindsStragglers) {
  PerfReport report(ReportOptions{.skip = 1});
  for (int i = 0; i < 12; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      report.Add(Request(rank, rank == 2 ? 1.2 : 1.0, i == 0));
    }
  }
  const PerfReport::Requests requests = report.SummarizeRequests();
  EXPECT_EQ(requests.warmup, 3);
  EXPECT_EQ(requests.skipped, 3);
  EXPECT_EQ(requests.e2e_s.count, 30);
  EXPECT_EQ(requests.e2e_s.p50, 1.0);
  ASSERT_THAT(requests.ranks, SizeIs(3));
  EXPECT_FALSE(requests.ranks[0].is_straggler);
  EXPECT_TRUE(requests.ranks[2].is_straggler);
  EXPECT_DOUBLE_EQ(requests.ranks[2].ratio, 1.2);
  // Twice 1e12 a request over half its time: sums over sums.
  EXPECT_THAT(*requests.dit.tflops, DoubleNear(60 / (0.5 * 32.0), 1e-9));
  EXPECT_THAT(*requests.dit.mfu, DoubleNear(*requests.dit.tflops / 100, 1e-9));
  EXPECT_EQ(requests.stages[0].calls, 60);
  EXPECT_THAT(requests.stages[0].share, DoubleNear(0.5, 1e-12));
  EXPECT_THAT(report.SummaryLines(), SizeIs(3));
}

TEST(PerfReport, EmptyReportsHaveNoFigures) {
  const PerfReport report(ReportOptions{});
  EXPECT_FALSE(report.has_requests());
  EXPECT_FALSE(report.has_training());
  EXPECT_THAT(report.SummaryLines(), IsEmpty());
  EXPECT_EQ(DescribeValues({}).count, 0);
}

TEST(FindChangePoints, FindsLevelsInNoiseAndNoneInNoiseAlone) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.02);
  std::vector<double> values;
  for (int i = 0; i < 300; ++i) {
    values.push_back((i < 100 ? 1.0 : i < 220 ? 1.3 : 1.1) + noise(random));
  }
  const std::vector<ChangePoint> changes = FindChangePoints(values);
  ASSERT_THAT(changes, SizeIs(2));
  EXPECT_THAT(changes[0].index,
              ::testing::AllOf(::testing::Ge(99u), ::testing::Le(101u)));
  EXPECT_THAT(changes[1].index,
              ::testing::AllOf(::testing::Ge(219u), ::testing::Le(221u)));
  EXPECT_THAT(changes[0].after, DoubleNear(1.3, 0.01));
  int false_alarms = 0;
  for (int run = 0; run < 100; ++run) {
    for (double& value : values) value = 1 + noise(random);
    false_alarms += !FindChangePoints(values, 0).empty();
  }
  EXPECT_LE(false_alarms, 5);
  EXPECT_THAT(FindChangePoints({{1, 2, 3}}), IsEmpty());
}

// The interval must hold the true ratio about as often as it says.
TEST(CompareMedians, IntervalsCoverTheTrueRatio) {
  std::mt19937 random(9);
  std::normal_distribution<double> left(1.0, 0.1);
  std::normal_distribution<double> right(1.1, 0.1);
  int covered = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i < 40; ++i) {
      a.push_back(left(random));
      b.push_back(right(random));
    }
    const MedianRatio ratio = CompareMedians(a, b, 0.95, 500);
    covered += ratio.interval->first <= 1.1 && ratio.interval->second >= 1.1;
  }
  EXPECT_GE(covered, kRuns * 0.88);
  EXPECT_LE(covered, kRuns);
  EXPECT_FALSE(CompareMedians({1, 2}, {1, 2, 3}).interval.has_value());
  EXPECT_FALSE(CompareMedians({0}, {1}).ratio.has_value());
  const MedianRatio same = CompareMedians({1, 2, 3}, {1, 2, 3});
  EXPECT_EQ(*same.ratio, 1);
}

TEST(ComparePerf, FlagsWhatIsWorseForSure) {
  PerfReport left(ReportOptions{.keep_samples = true});
  PerfReport slower(ReportOptions{.keep_samples = true});
  PerfReport noisy(ReportOptions{.keep_samples = true});
  for (int i = 0; i < 20; ++i) {
    left.Add(Request(0, 1.0 + 0.001 * i));
    slower.Add(Request(0, 1.1 + 0.001 * i));
    noisy.Add(Request(0, i % 2 == 0 ? 0.5 : 1.8));
  }
  const auto regressions = [&](const PerfReport& right) {
    int count = 0;
    for (const PerfDifference& difference :
         ComparePerf(left, right, 0.05, 0.95)) {
      count += difference.is_regression;
    }
    return count;
  };
  EXPECT_EQ(regressions(left), 0);
  EXPECT_EQ(regressions(slower), 3) << "end to end, stage total, stage mean";
  EXPECT_EQ(regressions(noisy), 0) << "the interval holds 1";
}

TEST(PerfPrometheus, DescribesEachMetricOnce) {
  PerfReport report(ReportOptions{});
  RequestRecord record = Request(0, 2);
  record.stages.emplace_back("vae \"x\"\n", SummarizeStage({1}));
  report.Add(record);
  const std::string text = PerfPrometheus(report);
  EXPECT_THAT(text, HasSubstr("videox_perf_request_seconds{quantile=\"0.5\"} "
                              "2\n"));
  EXPECT_THAT(text,
              HasSubstr("stage_seconds_total{stage=\"vae \\\"x\\\"\\n\"}"));
  const std::string help = "# TYPE videox_perf_stage_seconds_total";
  EXPECT_EQ(text.find(help), text.rfind(help));
}

// What promtool's linter insists on: one description a family, a family's
// samples in one piece behind it, and no family named as another's sample.
TEST(PerfPrometheus, KeepsTheRulesOfTheFormat) {
  PerfReport report(ReportOptions{});
  RequestRecord request = Request(0, 2);
  request.stages.emplace_back("vae \xFF", SummarizeStage({1}));
  request.peaks = MemoryPeaks{1, 2};
  report.Add(request);
  TrainWindowRecord window;
  window.steps = 3;
  window.step_s_p50 = window.step_s_p95 = 1;
  window.phases_s = {{"fwd", 0.5}, {"bwd", 0.5}};
  window.throughput = WindowThroughput{.wall_s = 3};
  report.Add(window);
  const std::string text = PerfPrometheus(report);
  EXPECT_EQ(FindInvalidUtf8(text), text.size());
  std::map<std::string, std::string> types;
  std::string family;
  int samples = 0;
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words[1] == "TYPE") {
      family = words[2];
      EXPECT_TRUE(types.emplace(family, words[3]).second) << line;
      for (const char* suffix : {"_sum", "_count", "_bucket"}) {
        if (!absl::EndsWith(family, suffix)) continue;
        EXPECT_EQ(types.count(std::string(absl::StripSuffix(family, suffix))),
                  0u)
            << line;
      }
    }
    if (words[0] == "#") continue;
    std::string name = line.substr(0, line.find_first_of("{ "));
    if (types[family] == "summary") {
      name = std::string(
          absl::StripSuffix(absl::StripSuffix(name, "_sum"), "_count"));
    }
    EXPECT_EQ(name, family) << line;
    EXPECT_EQ(types[family] == "counter", absl::EndsWith(name, "_total"));
    ++samples;
  }
  EXPECT_GE(samples, 20);
  EXPECT_THAT(text, HasSubstr("\nvideox_perf_request_seconds_sum 2\n"));
  EXPECT_THAT(text, HasSubstr("\nvideox_perf_step_seconds_count 3\n"));
}

TEST(PerfCsvRow, HasAsManyFieldsAsTheHeader) {
  const auto fields = [](const std::string& row) {
    return std::count(row.begin(), row.end(), ',');
  };
  RequestRecord request = Request(0, 1);
  EXPECT_EQ(fields(PerfCsvRow(request)), fields(PerfCsvHeader()));
  EXPECT_EQ(fields(PerfCsvRow(TrainWindowRecord{})), fields(PerfCsvHeader()));
  request.device = "a,\"b\"";
  EXPECT_THAT(PerfCsvRow(request), HasSubstr("\"a,\"\"b\"\"\""));
}

}  // namespace
}  // namespace firstframe
