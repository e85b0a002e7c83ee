#include "lib/trace/trace_report.h"

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/html_page.h"
#include "lib/testing/temp_dir.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_reader.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTrace[] = R"json([
{"ph":"X","cat":"user_annotation","name":"fastvideo.region::dec<od>e \u89e3","pid":1,"tid":1,"ts":1,"dur":50},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":2,"dur":3,"args":{"correlation":4}},
{"ph":"X","cat":"kernel","name":"void k<\"</script>\", 3>(int)",
               "pid" : 0, "tid" : 7, "ts" : 10, "dur" : 20, "args" : {
  "correlation" : 4, "stream" : 7
}
},
)json";

std::vector<TraceSummary> Summaries(const testing::TempDir& dir) {
  auto reader = TraceReader::Open(dir.Write("t.json", kTrace));
  return {*AnalyzeTrace(**reader, {})};
}

TEST(TraceReport, Text) {
  const testing::TempDir dir;
  std::ostringstream out;
  WriteTraceText(Summaries(dir)[0], {}, out);
  EXPECT_THAT(out.str(), HasSubstr("GPU 0: 1 events"));
  EXPECT_THAT(out.str(), HasSubstr("region dec<od>e 解: 1 times"));
  EXPECT_THAT(out.str(), HasSubstr("0 of 1 GPU events in no region"));
  EXPECT_THAT(out.str(), HasSubstr("note: truncated: 1 time"));
}

TEST(TraceReport, Json) {
  const testing::TempDir dir;
  const std::string json = TraceReportJson(Summaries(dir), {});
  simdjson::dom::parser parser;
  const simdjson::dom::element root = parser.parse(json);
  const simdjson::dom::element trace = root["traces"].at(0);
  EXPECT_EQ(int64_t{trace["regions"].at(0)["busy_ns"]}, 20000);
  EXPECT_EQ(int64_t{trace["devices"].at(0)["total_ns"]}, 20000);
  EXPECT_TRUE(trace["rank"].is_null());
  EXPECT_EQ(int64_t{trace["oddities"]["truncated"]["count"]}, 1);
}

TEST(TraceReport, HtmlDrawsTheSameFigures) {
  const testing::TempDir dir;
  const auto page = testing::LoadHtmlPage(
      dir.Write("t.html", TraceReportHtml(Summaries(dir), {})));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  EXPECT_THAT(page->dom, HasSubstr("<b>100.0 %</b><span>busy</span>"));
  EXPECT_THAT(page->dom, HasSubstr("dec&lt;od&gt;e 解"));
}

}  // namespace
}  // namespace firstframe
