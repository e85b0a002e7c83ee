#include "lib/trace/trace_analyzer.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::ReadFile;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TraceSummary Analyze(const std::string& path,
                     const TraceAnalyzerOptions& options = {}) {
  auto reader = TraceReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  if (!reader.ok()) return {};
  auto summary = AnalyzeTrace(**reader, options);
  EXPECT_TRUE(summary.ok()) << summary.status();
  return summary.ok() ? *std::move(summary) : TraceSummary{};
}

std::string X(const std::string& cat, const std::string& name, int pid, int tid,
              double ts, double dur, const std::string& args = "{}") {
  return absl::StrCat("{\"ph\":\"X\",\"cat\":\"", cat, "\",\"name\":\"", name,
                      "\",\"pid\":", pid, ",\"tid\":", tid, ",\"ts\":", ts,
                      ",\"dur\":", dur, ",\"args\":", args, "}");
}
std::string Corr(int correlation, int stream = 7) {
  return absl::StrCat("{\"correlation\":", correlation, ",\"device\":0,",
                      "\"stream\":", stream, "}");
}
std::string Launch(int tid, double ts, int correlation) {
  return X("cuda_runtime", "cudaLaunchKernel", 1, tid, ts, 1,
           absl::StrCat("{\"correlation\":", correlation, "}"));
}
std::string Trace(const std::vector<std::string>& events) {
  std::string text = "[";
  for (const std::string& event : events) {
    absl::StrAppend(&text, text.size() > 1 ? ",\n" : "\n", event);
  }
  return text + "\n]";
}

// Two regions on one thread, a nested one, a launch outside, a launch by
// another thread, all in microseconds.
std::string RegionTrace() {
  return Trace({
      X("user_annotation", "fastvideo.region::outer", 1, 1, 100, 100),
      X("user_annotation", "fastvideo.region::profiler_region_inner", 1, 1, 120,
        20),
      X("user_annotation", "fastvideo.region::inner", 1, 1, 300, 10),
      X("cpu_op", "aten::mm", 1, 1, 122, 6),
      Launch(1, 50, 1),   // before
      Launch(1, 110, 2),  // outer
      Launch(1, 123, 3),  // inner, in mm
      Launch(2, 150, 4),  // another thread, while outer is open
      Launch(1, 305, 5),  // second inner
      Launch(2, 250, 6),  // another thread, no region open
      X("kernel", "k_out", 0, 7, 60, 5, Corr(1)),
      X("kernel", "k_a", 0, 7, 130, 10, Corr(2)),
      X("kernel", "k_b", 0, 7, 140, 20, Corr(3)),
      X("gpu_memcpy", "Memcpy HtoD", 0, 8, 150, 60, Corr(4, 8)),
      X("kernel", "k_b", 0, 7, 310, 30, Corr(5)),
      X("kernel", "k_out", 0, 7, 400, 1, Corr(6)),
  });
}

TEST(TraceAnalyzer, AttributesWorkToRegions) {
  const TempDir dir;
  const TraceSummary summary = Analyze(dir.Write("t.json", RegionTrace()));
  EXPECT_TRUE(summary.has_named_regions);
  EXPECT_EQ(summary.gpu_event_count, 6);
  EXPECT_EQ(summary.gpu_outside_regions, 2);
  EXPECT_EQ(summary.launch_count, 6);
  ASSERT_THAT(summary.regions, SizeIs(2));
  const RegionSummary& inner = summary.regions[0];
  const RegionSummary& outer = summary.regions[1];
  EXPECT_EQ(inner.name, "inner");
  EXPECT_EQ(inner.count, 2);
  EXPECT_EQ(inner.host_ns, 30000);
  EXPECT_EQ(inner.p50_ns, 15000);
  EXPECT_EQ(inner.gpu_event_count, 2);
  EXPECT_EQ(inner.kernel_ns, 50000);
  EXPECT_EQ(inner.busy_ns, 50000);
  EXPECT_EQ(inner.launch_count, 2);
  // Entered at 120 and 300, done at 160 and 340.
  EXPECT_EQ(inner.window_ns, 80000);
  EXPECT_EQ(inner.idle_ns(), 30000);
  ASSERT_THAT(inner.ops, SizeIs(2));
  EXPECT_EQ(inner.ops[0].name, "");
  EXPECT_EQ(inner.ops[1].name, "aten::mm");
  EXPECT_EQ(inner.ops[1].total_ns, 20000);

  EXPECT_EQ(outer.name, "outer");
  EXPECT_EQ(outer.gpu_event_count, 3) << "k_a, nested k_b, the copy";
  EXPECT_EQ(outer.by_time_count, 1);
  EXPECT_EQ(outer.copy_ns, 60000);
  EXPECT_EQ(outer.kernel_ns, 30000);
  EXPECT_EQ(outer.busy_ns, 80000);
  EXPECT_EQ(outer.window_ns, 110000);
  ASSERT_THAT(summary.devices, SizeIs(1));
  EXPECT_EQ(summary.devices[0].busy_ns, 116000);
  EXPECT_EQ(summary.devices[0].exposed_copy_ns, 50000);
  EXPECT_EQ(summary.devices[0].total_ns(), 341000);
}

TEST(TraceAnalyzer, TheSameOnDisk) {
  const TempDir dir;
  std::vector<std::string> events;
  for (int i = 1; i <= 5000; ++i) {
    const double t = 10.0 * i;
    events.push_back(X("user_annotation", "fastvideo.region::r", 1, 1, t, 8));
    events.push_back(Launch(1, t + 1, i));
    events.push_back(
        X("kernel", absl::StrCat("k", i % 7), 0, 7, t + 3, 4, Corr(i)));
  }
  std::reverse(events.begin(), events.end());
  const std::string path = dir.Write("t.json", Trace(events));
  const TraceSummary memory = Analyze(path);
  const TraceSummary disk =
      Analyze(path, {.sort_bytes = 0, .temporary_folder = dir.path()});
  EXPECT_FALSE(memory.spilled);
  EXPECT_TRUE(disk.spilled);
  for (const TraceSummary& summary : {memory, disk}) {
    ASSERT_THAT(summary.regions, SizeIs(1));
    EXPECT_EQ(summary.regions[0].count, 5000);
    EXPECT_EQ(summary.regions[0].gpu_event_count, 5000);
    EXPECT_EQ(summary.regions[0].busy_ns, 20000000);
    EXPECT_THAT(summary.work, SizeIs(7));
  }
}

TEST(TraceAnalyzer, Selections) {
  const TempDir dir;
  const std::string path = dir.Write("t.json", RegionTrace());
  const TraceSummary only = Analyze(path, {.region_glob = "inn*"});
  ASSERT_THAT(only.regions, SizeIs(1));
  EXPECT_EQ(only.regions[0].gpu_event_count, 2);
  const TraceSummary late = Analyze(path, {.since_ns = 295000});
  EXPECT_EQ(late.gpu_event_count, 2);
  const TraceSummary early = Analyze(path, {.until_ns = 100000});
  EXPECT_EQ(early.gpu_event_count, 1);
}

TEST(TraceAnalyzer, AnnotationsStandInForRegions) {
  const TempDir dir;
  const TraceSummary summary = Analyze(dir.Write(
      "t.json", Trace({X("user_annotation", "ProfilerStep#1", 1, 1, 1, 8),
                       X("user_annotation", "ProfilerStep#2", 1, 1, 10, 8),
                       Launch(1, 11, 1), X("kernel", "k", 0, 7, 13, 4, Corr(1)),
                       X("user_annotation", "mine", 1, 1, 20, 2)})));
  EXPECT_FALSE(summary.has_named_regions);
  ASSERT_THAT(summary.regions, SizeIs(2));
  EXPECT_EQ(summary.regions[0].name, "ProfilerStep");
  EXPECT_EQ(summary.regions[0].count, 2);
  EXPECT_EQ(summary.regions[0].gpu_event_count, 1);
  EXPECT_EQ(summary.regions[1].name, "mine");
}

TEST(TraceAnalyzer, OddTimes) {
  const TempDir dir;
  const TraceSummary summary = Analyze(dir.Write(
      "t.json",
      Trace({X("kernel", "zero", 0, 7, 0, 0, Corr(1)),
             X("kernel", "back", 0, 7, 100, -5, Corr(2)),
             X("kernel", "week", 0, 7, 100, 7.0e11, Corr(3)),
             X("kernel", "before", 0, 7, -50, 10, Corr(4)),
             X("kernel", "tie", 0, 7, -40, 10, Corr(5)),
             X("kernel", "overlap", 0, 7, -45, 10, Corr(6)),
             "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"no time\"}"})));
  EXPECT_EQ(summary.dropped_zero_time, 1);
  EXPECT_EQ(summary.dropped_negative, 1);
  EXPECT_EQ(summary.dropped_overlong, 1);
  EXPECT_EQ(summary.gpu_event_count, 3);
  EXPECT_EQ(summary.gpu_without_launch, 3);
  EXPECT_EQ(summary.devices[0].busy_ns, 20000);
  EXPECT_EQ(summary.devices[0].total_ns(), 20000);
}

TEST(TraceAnalyzer, BeginAndEndPairs) {
  const TempDir dir;
  const auto be = [](const char* ph, double ts, const char* name) {
    return absl::StrCat("{\"ph\":\"", ph, "\",\"cat\":\"user_annotation\",",
                        "\"name\":\"", name,
                        "\",\"pid\":1,\"tid\":1,\"ts\":", ts, "}");
  };
  const TraceSummary summary = Analyze(dir.Write(
      "t.json", Trace({be("B", 10, "fastvideo.region::a"), Launch(1, 12, 1),
                       be("E", 20, ""), be("E", 21, ""),
                       be("B", 30, "fastvideo.region::b"), Launch(1, 31, 2),
                       X("kernel", "k", 0, 7, 40, 10, Corr(2)),
                       X("kernel", "k", 0, 7, 25, 1, Corr(1))})));
  ASSERT_THAT(summary.regions, SizeIs(2));
  EXPECT_EQ(summary.regions[0].host_ns, 10000);
  EXPECT_EQ(summary.regions[0].gpu_event_count, 1);
  EXPECT_EQ(summary.regions[1].host_ns, 20000) << "open until the trace ends";
  EXPECT_EQ(summary.regions[1].gpu_event_count, 1);
}

TEST(TraceAnalyzer, LaunchBoundIdle) {
  const TempDir dir;
  // A gap of 50: 30 of them pass before the launch returns.
  const TraceSummary summary = Analyze(
      dir.Write("t.json", Trace({Launch(1, 0.5, 1), Launch(1, 139, 2),
                                 X("kernel", "a", 0, 7, 100, 10, Corr(1)),
                                 X("kernel", "b", 0, 7, 160, 10, Corr(2))})));
  EXPECT_EQ(summary.devices[0].idle_ns(), 50000);
  EXPECT_EQ(summary.devices[0].launch_bound_ns, 30000);
}

// The independent figures of the corpus: TraceLens' own reports.
class Expected : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const corpus = std::getenv("FIRSTFRAME_CORPUS");
    if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
    folder_ = absl::StrCat(corpus, "/kineto/");
  }
  void CheckTimeline(const std::string& name, const GpuTimeline& gpu) {
    std::map<std::string, double> rows;
    const std::string csv =
        ReadFile(absl::StrCat(folder_, "expected/", name, ".gpu_timeline.csv"));
    for (absl::string_view line : absl::StrSplit(csv, '\n')) {
      const std::vector<std::string> cells = absl::StrSplit(line, ',');
      double value = 0;
      if (cells.size() == 3 && absl::SimpleAtod(cells[1], &value)) {
        rows[cells[0]] = value;
      }
    }
    ASSERT_EQ(rows.size(), 8u);
    // The reference computes in float64 microseconds since the epoch.
    constexpr double kRounding = 0.001;
    EXPECT_NEAR(gpu.compute_ns * 1e-6, rows["computation_time"], kRounding);
    EXPECT_NEAR(gpu.exposed_comm_ns * 1e-6, rows["exposed_comm_time"],
                kRounding);
    EXPECT_NEAR(gpu.exposed_copy_ns * 1e-6, rows["exposed_memcpy_time"],
                kRounding);
    EXPECT_NEAR(gpu.busy_ns * 1e-6, rows["busy_time"], kRounding);
    EXPECT_NEAR(gpu.idle_ns() * 1e-6, rows["idle_time"], kRounding);
    EXPECT_NEAR(gpu.total_ns() * 1e-6, rows["total_time"], kRounding);
    EXPECT_NEAR(gpu.copy_ns * 1e-6, rows["total_memcpy_time"], kRounding);
  }
  std::string folder_;
};

TEST_F(Expected, BertTimelineAndKernels) {
  const TraceSummary summary =
      Analyze(folder_ + "tracelens_h100_bert-small.json.gz");
  ASSERT_THAT(summary.devices, SizeIs(1));
  CheckTimeline("tracelens_h100_bert-small", summary.devices[0]);
  // Rows of the summary by operator, kernel and stream, from the right: kernel
  // names hold commas.
  const std::string csv = ReadFile(
      folder_ + "expected/tracelens_h100_bert-small.kernel_summary.csv");
  int checked = 0;
  for (absl::string_view line : absl::StrSplit(csv, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "Parent")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    const size_t n = cells.size();
    double sum = 0, low = 0, high = 0;
    int64_t stream = 0, count = 0;
    ASSERT_TRUE(absl::SimpleAtoi(cells[n - 8], &stream));
    ASSERT_TRUE(absl::SimpleAtod(cells[n - 7], &sum));
    ASSERT_TRUE(absl::SimpleAtoi(cells[n - 6], &count));
    ASSERT_TRUE(absl::SimpleAtod(cells[n - 4], &low));
    ASSERT_TRUE(absl::SimpleAtod(cells[n - 3], &high));
    std::string name = absl::StrJoin(
        std::vector<std::string>(cells.begin() + 2, cells.end() - 8), ",");
    if (name.front() == '"') name = name.substr(1, name.size() - 2);
    bool found = false;
    for (const GpuWorkRow& row : summary.work) {
      if (row.name != name || row.op != cells[1]) continue;
      found = true;
      EXPECT_EQ(row.count, count) << line;
      EXPECT_EQ(row.stream, stream) << line;
      EXPECT_NEAR(row.total_ns * 1e-3, sum, 0.001) << line;
      EXPECT_NEAR(row.min_ns * 1e-3, low, 0.001) << line;
      EXPECT_NEAR(row.max_ns * 1e-3, high, 0.001) << line;
    }
    EXPECT_TRUE(found) << line;
    ++checked;
  }
  EXPECT_EQ(checked, 12);
}

TEST_F(Expected, DiffusionTimeline) {
  const TraceSummary summary =
      Analyze(folder_ + "tracelens_xdit_flux1_profile_rank_0.json.gz");
  ASSERT_THAT(summary.devices, SizeIs(1));
  CheckTimeline("tracelens_xdit_flux1_profile_rank_0", summary.devices[0]);
  // The reference splits classes by module; sums of its rows of one class.
  std::map<std::string, double> expected;
  const std::string csv =
      ReadFile(folder_ +
               "expected/tracelens_xdit_flux1_profile_rank_0."
               "ops_summary_by_category.csv");
  for (absl::string_view line : absl::StrSplit(csv, '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    double ms = 0;
    if (cells.size() > 5 && absl::SimpleAtod(cells[cells.size() - 3], &ms)) {
      expected[cells[0]] += ms;
    }
  }
  std::map<std::string, double> classes;
  for (const GpuWorkRow& row : summary.work) {
    classes[WorkClass(row)] += row.total_ns * 1e-6;
  }
  EXPECT_NEAR(classes["GEMM"], expected["GEMM"], 0.001);
  EXPECT_NEAR(classes["triton"], expected["triton"], 0.001);
  EXPECT_NEAR(classes["CONV"], expected["CONV_fwd"], 0.001);
  EXPECT_NEAR(classes["reduce"], expected["reduce"], 0.001);
}

}  // namespace
}  // namespace firstframe
