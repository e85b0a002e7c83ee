#include "lib/phase/phase_diff.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Runs of one phase each.
PhaseDocument Runs(const std::string& name, std::vector<int64_t> durations_ns) {
  PhaseDocument document;
  for (const int64_t duration_ns : durations_ns) {
    document.samples.push_back(
        {.recording_duration_ns = duration_ns,
         .lanes = {{.name = "main"}},
         .phases = {{.id = 0, .name = name, .duration_ns = duration_ns}}});
  }
  return document;
}

TEST(PhaseDiff, ComparesMediansAndMarksWhatChanceHardlyMakes) {
  const PhaseDiff diff =
      DiffPhases(Runs("load", {30'000'000, 10'000'000, 20'000'000}),
                 Runs("load", {50'000'000, 40'000'000, 60'000'000}));
  ASSERT_EQ(diff.phases.size(), 1u);
  EXPECT_EQ(*diff.phases[0].left_ns, 20'000'000);
  EXPECT_EQ(*diff.phases[0].right_ns, 50'000'000);
  EXPECT_TRUE(diff.phases[0].is_separated);
  EXPECT_TRUE(diff.recording.is_separated);
  // Overlap, or too few runs.
  EXPECT_FALSE(DiffPhases(Runs("a", {1, 2, 9}), Runs("a", {8, 9, 10}))
                   .phases[0]
                   .is_separated);
  EXPECT_FALSE(
      DiffPhases(Runs("a", {1, 2}), Runs("a", {8, 9})).phases[0].is_separated);
}

TEST(PhaseDiff, ARunAgainstItselfHasNoDifference) {
  const PhaseDocument runs = Runs("load", {30, 10, 20});
  for (const PhaseDifference& row : DiffPhases(runs, runs).phases) {
    EXPECT_EQ(row.left_ns, row.right_ns);
    EXPECT_FALSE(row.is_separated);
  }
}

TEST(PhaseDiff, KeepsPhasesOfOneSideOnly) {
  const PhaseDiff diff =
      DiffPhases(Runs("old", {5'000'000}), Runs("new", {7'000'000}));
  ASSERT_EQ(diff.phases.size(), 2u);
  // What only the right side has comes where it is in its own runs: first.
  EXPECT_EQ(diff.phases[0].path, "new");
  EXPECT_FALSE(diff.phases[0].left_ns.has_value());
  EXPECT_EQ(diff.phases[1].path, "old");
  EXPECT_FALSE(diff.phases[1].right_ns.has_value());
  std::string text;
  JsonWriter json(&text);
  WritePhaseDiffJson(diff, json);
  simdjson::dom::parser parser;
  simdjson::dom::object root = parser.parse(text).get_object();
  EXPECT_TRUE(root["phases"].at(1)["right_median_ns"].is_null());
  EXPECT_EQ(int64_t(root["phases"].at(0)["delta_ns"]), 7'000'000);
  EXPECT_EQ(int64_t(root["recording"]["delta_ns"]), 2'000'000);
}

TEST(PhaseDiff, TextNamesBothSides) {
  std::ostringstream out;
  WritePhaseDiffText(
      DiffPhases(Runs("load", {30'000'000, 10'000'000, 20'000'000}),
                 Runs("load", {50'000'000, 40'000'000, 60'000'000})),
      {.width = 80}, out);
  EXPECT_THAT(out.str(), HasSubstr("20.0        50.0       +30.0  +150.0%*"));
  EXPECT_THAT(out.str(), HasSubstr("medians of 3 and 3 runs"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\x1b")));
  WritePhaseDiffText(DiffPhases({}, {}), {}, out);
}

}  // namespace
}  // namespace firstframe
