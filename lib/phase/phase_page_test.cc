#include "lib/phase/phase_page.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/phase/phase_test_report.h"
#include "lib/testing/html_page.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Loads `html` and keeps it among the test's outputs, to be looked at.
std::optional<testing::HtmlPage> Load(absl::string_view html) {
  const char* const outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  if (outputs != nullptr) {
    const std::string path = std::string(outputs) + "/page.html";
    if (std::FILE* file = std::fopen(path.c_str(), "w"); file != nullptr) {
      std::fwrite(html.data(), 1, html.size(), file);
      std::fclose(file);
    }
  }
  const testing::TempDir dir;
  return testing::LoadHtmlPage(dir.Write("page.html", html));
}

TEST(PhasePage, ShowsPhasesGapsErrorsAndContext) {
  const auto page = Load(RenderPhasePage(
      {.tool = "vae_startup",
       .build = {.version = "0.1.0", .commit = "abc"},
       .context_json = R"({"machine":{"cpu_model":"EPYC"},"note":"</script>",
                           "command":["a","b c"],"libraries":[{"path":"/x"}]})",
       .samples = {MakePhaseTestReport()}},
      "Startup of <vae>"));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  EXPECT_THAT(page->dom, HasSubstr("<h1>Startup of &lt;vae&gt;</h1>"));
  EXPECT_THAT(page->dom, HasSubstr("vae_startup 0.1.0 at abc"));
  for (const char* text :
       {"vae.checkpoint_read", "first_decode", "84.0 %", "100.0 ms",
        "machine.cpu_model", "EPYC", "a b c", "path /x", "reader 1",
        "<td class=\"num\">20.0 ms</td>", "model.safetensors: \"short\" read",
        "1</b><span>failed phase"}) {
    EXPECT_THAT(page->dom, HasSubstr(text));
  }
}

TEST(PhasePage, ShowsEachRunsSample) {
  std::vector<PhaseReport> runs(5, MakePhaseTestReport());
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].phases[6].duration_ns += static_cast<int64_t>(i) * 5'000'000;
    runs[i].recording_duration_ns += static_cast<int64_t>(i) * 5'000'000;
  }
  const auto page =
      Load(RenderPhasePage({.tool = "vae_startup", .samples = runs}, "Runs"));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  // The median run is shown; all five are there.
  EXPECT_THAT(page->dom, HasSubstr("this run (3 of 5)"));
  EXPECT_THAT(page->dom, HasSubstr("run 5: 120.0 ms"));
  EXPECT_THAT(page->dom, HasSubstr("<td class=\"num\">50.0 ms</td>"));
  EXPECT_THAT(page->dom, HasSubstr("median; min 100.0 ms, p95 119.0 ms"));
}

TEST(PhasePage, SurvivesOddReports) {
  PhaseReport odd = {.recording_duration_ns = 0};
  for (int64_t i = 0; i < 3; ++i) {
    odd.phases.push_back({.id = i,
                          .parent_id = (i + 1) % 3,
                          .name = i == 0 ? "" : "<b>\n",
                          .start_offset_ns = -5});
  }
  for (const auto& samples :
       {std::vector<PhaseReport>{}, {PhaseReport{}}, {odd}}) {
    const auto page = Load(RenderPhasePage({.samples = samples}, ""));
    if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
    EXPECT_THAT(page->problems, IsEmpty());
    EXPECT_THAT(page->dom, Not(HasSubstr("NaN")));
  }
}

}  // namespace
}  // namespace firstframe
