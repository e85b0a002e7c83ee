#include "lib/trace/trace_transform.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_reader.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Event(const char* cat, const std::string& name, int pid, int tid,
                  double ts, double dur, int correlation = 0) {
  std::string args;
  if (correlation != 0) {
    args = absl::StrCat(",\"args\":{\"correlation\":", correlation,
                        ",\"stream\":", tid, "}");
  }
  return absl::StrCat("{\"ph\":\"X\",\"cat\":\"", cat, "\",\"name\":\"", name,
                      "\",\"pid\":", pid, ",\"tid\":", tid, ",\"ts\":", ts,
                      ",\"dur\":", dur, args, "}");
}

std::string Names(const std::string& path) {
  auto reader = TraceReader::Open(path);
  if (!reader.ok()) return std::string(reader.status().message());
  std::string names;
  for (TraceEvent event; *(*reader)->Next(&event);) {
    if (event.phase == 'M') continue;
    absl::StrAppend(&names, names.empty() ? "" : " ", event.name);
  }
  return names;
}

bool IsStrictJson(const std::string& text) {
  simdjson::dom::parser parser;
  return parser.parse(text).error() == simdjson::SUCCESS;
}

TEST(TraceTransform, RepairsEveryOddity) {
  const TempDir dir;
  const std::string input = dir.Write(
      "broken.json",
      std::string("\xef\xbb\xbf{\"host\": \"C:\\Users\", \"traceEvents\": [,") +
          R"({"ph":"X","cat":"c","name":"f("x") y","ts":1,"dur":NaN},)" +
          "{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"a\x01\xff\",\"ts\":1,\"dur\":"
          "2,"
          "\"args\":{\"v\":nan,\"w\":[1,,Infinity,01],}},"
          "{\"ph\":\"X\",cat\":\"c\",\"name\":\"\xe8\xa7\xa3\",\"ts\":\"5\"}"
          "{\"ph\":\"X\",\"cat\":\"c\",\"name\":\"last\",\"ts\":7,\"dur\":1},"
          "{\"ph\":\"X\",\"cat\":\"c\",\"na");
  const std::string output = dir.File("fixed.json");
  ASSERT_OK_AND_ASSIGN(const WrittenTrace written, RepairTrace(input, output));
  EXPECT_EQ(written.event_count, 4);
  const std::string text = ReadFile(output);
  EXPECT_TRUE(IsStrictJson(text)) << text;
  EXPECT_THAT(text, HasSubstr(R"("f(\"x\") y")"));
  EXPECT_THAT(text, HasSubstr(R"({"v": null, "w": [1, null, 1]})"));
  EXPECT_THAT(text, HasSubstr("解"));
  auto again = TraceReader::Open(output);
  TraceEvent event;
  while (*(*again)->Next(&event)) {
  }
  for (int i = 0; i < kTraceOddityCount; ++i) {
    if (static_cast<TraceOddity>(i) == TraceOddity::kTimeIsText) continue;
    EXPECT_EQ((*again)->info().oddities[i].count, 0)
        << TraceOddityName(static_cast<TraceOddity>(i));
  }
}

TEST(TraceTransform, EveryPrefixRepairsToStrictJson) {
  const TempDir dir;
  const std::string text = absl::StrCat(
      "{\"traceEvents\":[", Event("kernel", "k\\\"1", 0, 7, 1, 2, 3), ",",
      Event("cpu_op", "two", 5, 6, 2, 3), "],\"x\":{\"y\":[1,2]}}");
  for (size_t n = 1; n <= text.size(); ++n) {
    const std::string output = dir.File("o.json");
    const auto written =
        RepairTrace(dir.Write("i.json", text.substr(0, n)), output);
    ASSERT_THAT(written, IsOk()) << n;
    EXPECT_TRUE(IsStrictJson(ReadFile(output))) << n;
  }
}

TEST(TraceTransform, Redacts) {
  const TempDir dir;
  const std::string input = dir.Write("t.json", R"({"host_name": "secret-host",
"traceName": "/home/alice/x.json", "schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"python_function","name":"/home/alice/proj/run.py(12): main","ts":1,"dur":2},
{"ph":"X","cat":"user_annotation","name":"a cat on the moon","ts":1,"dur":2},
{"ph":"X","cat":"gpu_user_annotation","name":"a cat on the moon","ts":1,"dur":2},
{"ph":"X","cat":"user_annotation","name":"fastvideo.region::decode","ts":1,"dur":2},
{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2,
 "args":{"Call stack":"/home/alice/a.py(1): f","Concrete Inputs":["a dog"],"Ev Idx":3,"Input Dims":[[1,2]]}}]})");
  const std::string output = dir.File("o.json");
  ASSERT_THAT(RedactTrace(input, output), IsOk());
  const std::string text = ReadFile(output);
  EXPECT_TRUE(IsStrictJson(text));
  for (const char* secret :
       {"secret-host", "alice", "cat on", "a dog", "Call stack"}) {
    EXPECT_THAT(text, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(text, HasSubstr("\"run.py(12): main\""));
  EXPECT_THAT(text, HasSubstr("fastvideo.region::decode"));
  EXPECT_THAT(text, HasSubstr("\"Input Dims\": [[1, 2]]"));
  // The host's and the device's annotation stay the same name.
  const size_t first = text.find("annotation-");
  EXPECT_NE(text.find(text.substr(first, 27), first + 1), std::string::npos);
}

TEST(TraceTransform, SplitsByTime) {
  const TempDir dir;
  const std::string input = dir.Write(
      "t.json",
      absl::StrCat("{\"traceEvents\":[", Event("c", "a", 1, 1, 100, 5), ",",
                   Event("c", "b", 1, 1, 1099, 5), ",",
                   Event("c", "d", 1, 1, 1100, 5), ",",
                   Event("c", "e", 1, 1, 5100, 5),
                   ",{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,"
                   "\"args\":{\"name\":\"x\"}}],\"schemaVersion\":1}"));
  ASSERT_OK_AND_ASSIGN(const auto parts, SplitTrace(input, dir.File("p"),
                                                    {.window_ns = 1'000'000}));
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_TRUE(absl::EndsWith(parts[0].path, "p.t0000.json.gz"));
  EXPECT_EQ(Names(parts[0].path), "a b");
  EXPECT_EQ(Names(parts[1].path), "d");
  EXPECT_EQ(Names(parts[2].path), "e");
  EXPECT_TRUE(absl::EndsWith(parts[2].path, "p.t0005.json.gz"));
  EXPECT_EQ(parts[2].event_count, 2) << "the process's name goes along";
  EXPECT_FALSE(SplitTrace(input, dir.File("q"), {.window_ns = 0}).ok());
}

TEST(TraceTransform, SplitsByRegion) {
  const TempDir dir;
  const std::string input = dir.Write(
      "t.json",
      absl::StrCat(
          "[", Event("user_annotation", "fastvideo.region::a", 1, 1, 10, 10),
          ",", Event("user_annotation", "fastvideo.region::b", 1, 1, 50, 10),
          ",", Event("cuda_runtime", "cudaLaunchKernel", 1, 1, 12, 1, 3), ",",
          Event("kernel", "ka", 0, 7, 25, 5, 3), ",",
          Event("cpu_op", "between", 1, 1, 40, 5), ",",
          Event("cpu_op", "in_b", 1, 1, 52, 1), "]"));
  ASSERT_OK_AND_ASSIGN(
      const auto parts,
      SplitTrace(input, dir.File("p"), {.by = TraceSplit::kRegion}));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(Names(parts[0].path), "fastvideo.region::a cudaLaunchKernel ka");
  EXPECT_EQ(Names(parts[1].path), "fastvideo.region::b in_b");
}

TEST(TraceTransform, MergesAndSplitsByRankAgain) {
  const TempDir dir;
  std::vector<std::string> inputs;
  for (int rank = 0; rank < 2; ++rank) {
    inputs.push_back(dir.Write(
        absl::StrCat("r", rank, ".json"),
        absl::StrCat(
            "{\"distributedInfo\": {\"rank\": ", rank, "}, \"traceEvents\":[",
            Event("user_annotation", "fastvideo.region::x", 514, 514, 10, 20),
            ",", Event("cuda_runtime", "cudaLaunchKernel", 514, 514, 12, 1, 9),
            ",", Event("kernel", absl::StrCat("k", rank), 0, 7, 15, 5, 9),
            ",{\"ph\":\"s\",\"id\":9,\"pid\":514,\"tid\":514,\"ts\":12,"
            "\"cat\":\"ac2g\",\"name\":\"ac2g\"},"
            "{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"t\",\"pid\":\"Spans\","
            "\"tid\":\"x\",\"ts\":1,\"dur\":1},"
            "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"o\",\"pid\":-1,"
            "\"tid\":0,\"ts\":1,\"dur\":1}],",
            // Three milliseconds and 1 ns apart.
            "\"baseTimeNanoseconds\":", 1790857026000000000 + rank * 3000001,
            "}")));
  }
  const std::string output = dir.File("merged.json");
  ASSERT_OK_AND_ASSIGN(const WrittenTrace merged,
                       MergeTraces(inputs, output, TraceAlign::kClock));
  EXPECT_EQ(merged.event_count, 12 + 2 * 2 * 3) << "labels of three pids each";
  const std::string text = ReadFile(output);
  ASSERT_TRUE(IsStrictJson(text));
  EXPECT_THAT(text, HasSubstr("\"ts\": 3015.001"));
  EXPECT_THAT(text, HasSubstr("\"labels\": \"rank 1\""));
  EXPECT_THAT(text, HasSubstr("\"Spans rank 1\""));
  auto reader = TraceReader::Open(output);
  std::set<int64_t> pids;
  for (TraceEvent event; *(*reader)->Next(&event);) {
    if (event.pid_text.empty()) pids.insert(event.pid);
  }
  EXPECT_THAT(pids, ElementsAre(10000000, 10000514, 19999999, 20000000,
                                20000514, 29999999));
  // The same correlation in both inputs stays apart.
  auto again = TraceReader::Open(output);
  ASSERT_OK_AND_ASSIGN(const TraceSummary summary, AnalyzeTrace(**again, {}));
  EXPECT_EQ(summary.gpu_outside_regions, 0);
  EXPECT_EQ(summary.regions[0].gpu_event_count, 2);
  ASSERT_EQ(summary.devices.size(), 2u);

  ASSERT_OK_AND_ASSIGN(const auto parts, SplitTrace(output, dir.File("p"),
                                                    {.by = TraceSplit::kRank}));
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_THAT(Names(parts[0].path), HasSubstr("k0"));
  EXPECT_THAT(Names(parts[0].path), Not(HasSubstr("k1")));

  ASSERT_THAT(MergeTraces(inputs, output, TraceAlign::kStart), IsOk());
  EXPECT_THAT(ReadFile(output), Not(HasSubstr("\"ts\": 3015.001")));
}

}  // namespace
}  // namespace firstframe
