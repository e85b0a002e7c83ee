#include "lib/activation/report.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare_testing.h"
#include "lib/testing/html_page.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using testing::Compare;
using testing::CompareText;
using testing::GoldenTrace;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::Toy;
using testing::ToyTrace;

TEST(Report, JsonlAndGithubAndText) {
  const auto c = CompareText(ToyTrace(), ToyTrace([](Toy& t) {
                               if (t.module == "blocks.6.attn") t.shape = "[9]";
                             }));
  std::ostringstream jsonl, github, text;
  WriteJsonl(c->result, {.rows = 10, .all_rows = true}, jsonl);
  EXPECT_THAT(jsonl.str(), StartsWith("{\"kind\":\"summary\",\"schema\":"
                                      "\"firstframe.trace_diff/1\""));
  EXPECT_THAT(jsonl.str(), HasSubstr("{\"kind\":\"divergence\",\"pair\":25,"
                                     "\"module\":\"blocks.6.attn\""));
  const std::string lines = jsonl.str();
  // The summary, the divergence, its limit and every pair.
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2 + 1 + 48);
  EXPECT_THAT(lines, HasSubstr("{\"kind\":\"limit\",\"sub_operation\":"
                               "\"blocks.*.attn out\",\"pairs\":1,"));
  WriteGithub(c->result, github);
  EXPECT_THAT(github.str(), StartsWith("::error title=First divergence::"));
  WriteText(c->result, {}, text);
  EXPECT_THAT(text.str(),
              StartsWith("differ: first divergence at blocks.6.attn\n"));
}

TEST(Report, HostileNamesStayText) {
  const auto c = CompareText(
      "{\"module\": \"<script>bad()</script>\\ud800\\u001b[31m\", \"tensor\": "
      "\"out\", \"step\": null, \"abs_mean\": 1.0}\n",
      "{\"module\": \"<script>bad()</script>\\ud800\\u001b[31m\", \"tensor\": "
      "\"out\", \"step\": null, \"abs_mean\": 2.0}\n");
  std::ostringstream text, jsonl;
  WriteText(c->result, {}, text);
  EXPECT_THAT(text.str(), ::testing::Not(HasSubstr("\x1b")));
  const std::string html = RenderHtml(c->result);
  EXPECT_THAT(html, ::testing::Not(HasSubstr("<script>bad()")));
}

TEST(Report, PageShowsTheFirstDivergence) {
  const auto c =
      Compare(GoldenTrace("gpu_fp32"), GoldenTrace("gpu_fp32_bug_conv1_2pct"));
  const testing::TempDir dir;
  const std::string html = RenderHtml(c->result);
  if (const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    std::ofstream(std::string(outputs) + "/page.html") << html;
  }
  const auto page = testing::LoadHtmlPage(dir.Write("page.html", html));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  EXPECT_THAT(page->dom, HasSubstr("verdict differ"));
  EXPECT_THAT(page->dom,
              HasSubstr("decoder.up_blocks.1.resnets.0.conv1 is the first"));
  EXPECT_THAT(page->dom, HasSubstr("461</b><span>pairs"));
  EXPECT_THAT(page->dom, HasSubstr("class=\"fired\""));
}

}  // namespace
}  // namespace firstframe
