#include "lib/phase/phase_text.h"

#include <sstream>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/text_width.h"
#include "lib/phase/phase_test_report.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Render(const PhaseReport& report, PhaseTextOptions options = {}) {
  std::ostringstream out;
  WritePhaseText(report, options, out);
  return out.str();
}

TEST(PhaseText, DrawsTreeBarsGapsAndErrors) {
  EXPECT_EQ(
      Render(MakePhaseTestReport(), {.width = 80, .unicode = false}),
      R"(phase                       start ms         ms   share  0               100.000
process.exec                   0.000      4.000    4.0%  #
(gap)                          4.000     16.000   16.0%  .....
component.vae                 20.000     40.000   40.0%      ##########
|- vae.construct              20.000     10.000   10.0%      ###
|- vae.checkpoint_read        31.000     20.000   20.0%         xxxxx
     ! error: model.safetensors: "short" read)"
      "\xEF\xBF\xBD</script>\xEF\xBF\xBD"
      R"(
|  `- shard )"
      "\xE8\xA7\xA3"
      R"( [reader 1]     31.000     19.000   19.0%         #####
`- vae.finalize               60.000      0.000    0.0%               #
first_decode                  60.000     40.000   40.0%               ##########
total 100.000 ms, of which phases name 84.000 ms (84.0%)
)");
}

TEST(PhaseText, ColourIsOnlyThereWhenAskedFor) {
  EXPECT_THAT(Render(MakePhaseTestReport()), Not(HasSubstr("\x1b")));
  const std::string painted = Render(MakePhaseTestReport(), {.colour = true});
  EXPECT_THAT(painted, HasSubstr("\x1b[31m"));
  for (const absl::string_view line : absl::StrSplit(painted, '\n')) {
    // Every line ends as it began.
    EXPECT_EQ(line.rfind("\x1b[0m") == absl::string_view::npos,
              line.find('\x1b') == absl::string_view::npos);
  }
}

TEST(PhaseText, RowsKeepTheWidthWhateverTheNames) {
  PhaseReport report = MakePhaseTestReport();
  for (PhaseRecord& phase : report.phases) {
    phase.name = std::string(300, 'n') + "\x1b[2J\n\xFF";
    phase.status = PhaseStatus::kOk;
  }
  for (const size_t width : {60, 80, 100, 237}) {
    for (const bool unicode : {false, true}) {
      const std::string text =
          Render(report, {.width = width, .unicode = unicode});
      for (const absl::string_view line : absl::StrSplit(text, '\n')) {
        EXPECT_LE(DisplayWidth(line), width) << line;
      }
      EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    }
  }
}

TEST(PhaseText, HidesShortPhasesButNotFailedOnesNorTheirParents) {
  const std::string text = Render(MakePhaseTestReport(), {.min_share = 0.5});
  EXPECT_THAT(text, HasSubstr("vae.checkpoint_read"));
  EXPECT_THAT(text, HasSubstr("component.vae"));
  EXPECT_THAT(text, Not(HasSubstr("first_decode")));
  EXPECT_THAT(text, HasSubstr("5 phases are not shown: shorter than 50%"));
}

TEST(PhaseText, GroupsTheRootsOfEachLane) {
  const std::string text =
      Render({.recording_duration_ns = 100,
              .lanes = {{.name = "main"}, {.name = "rank 1"}},
              .phases = {{.id = 0, .name = "first", .duration_ns = 40},
                         {.id = 1,
                          .name = "other",
                          .start_offset_ns = 20,
                          .duration_ns = 60,
                          .lane = 1},
                         {.id = 2,
                          .name = "last",
                          .start_offset_ns = 80,
                          .duration_ns = 20}}});
  EXPECT_LT(text.find("first"), text.find("last"));
  EXPECT_LT(text.find("last"), text.find("[rank 1]\n"));
  EXPECT_LT(text.find("[rank 1]\n"), text.find("other"));
  EXPECT_THAT(text, Not(HasSubstr("other [")));
}

TEST(PhaseText, AnEmptyReportIsShown) {
  EXPECT_THAT(Render({}), HasSubstr("total 0.000 ms"));
  EXPECT_THAT(Render({.recording_duration_ns = 5'000'000}), HasSubstr("(gap)"));
}

}  // namespace
}  // namespace firstframe
