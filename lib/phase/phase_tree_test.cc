#include "lib/phase/phase_tree.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/phase/phase_test_report.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;

TEST(PhaseTree, OrdersDepthFirstAndFindsGaps) {
  const PhaseTree tree = BuildPhaseTree(MakePhaseTestReport());
  std::vector<std::string> paths;
  for (const PhaseNode& node : tree.nodes) paths.push_back(node.path);
  EXPECT_THAT(
      paths, ElementsAre("process.exec", "component.vae",
                         "component.vae/vae.construct",
                         "component.vae/vae.checkpoint_read",
                         "component.vae/vae.checkpoint_read/shard \xE8\xA7\xA3",
                         "component.vae/vae.finalize", "first_decode"));
  // 40 ms less 10 and 20 of its children.
  EXPECT_EQ(tree.nodes[1].self_ns, 10'000'000);
  // A child of another lane leaves its parent's own time alone.
  EXPECT_EQ(tree.nodes[3].self_ns, 20'000'000);
  ASSERT_EQ(tree.gaps.size(), 1u);
  EXPECT_EQ(tree.gaps[0].start_offset_ns, 4'000'000);
  EXPECT_EQ(tree.gaps[0].duration_ns, 16'000'000);
}

TEST(PhaseTree, GapsAndRootsCoverTheRecordingExactly) {
  PhaseReport report = {.recording_duration_ns = 100};
  // Overlapping roots, one that ends late, and a gap at each end.
  for (const auto& [start, duration] :
       {std::pair<int64_t, int64_t>{10, 20}, {15, 5}, {25, 10}, {50, 30}}) {
    report.phases.push_back({.id = static_cast<int64_t>(report.phases.size()),
                             .start_offset_ns = start,
                             .duration_ns = duration});
  }
  const PhaseTree tree = BuildPhaseTree(report);
  ASSERT_EQ(tree.gaps.size(), 3u);
  int64_t gaps_ns = 0;
  for (const PhaseGap& gap : tree.gaps) gaps_ns += gap.duration_ns;
  EXPECT_EQ(gaps_ns, 100 - (25 + 30));
}

TEST(PhaseTree, CutsCyclesAndKeepsEveryPhase) {
  PhaseReport report;
  for (int64_t i = 0; i < 6; ++i)
    report.phases.push_back({.id = i, .name = "p"});
  report.phases[0].parent_id = 0;  // its own parent
  report.phases[1].parent_id = 3;  // 1 -> 3 -> 2 -> 1
  report.phases[3].parent_id = 2;
  report.phases[2].parent_id = 1;
  report.phases[4].parent_id = 2;  // hangs on the cycle
  report.phases[5].parent_id = 77;
  EXPECT_EQ(BuildPhaseTree(report).nodes.size(), 6u);
}

TEST(PhaseTree, DeepNestingIsLinear) {
  PhaseReport report;
  for (int64_t i = 0; i < 200'000; ++i) {
    report.phases.push_back({.id = i, .name = "p"});
    if (i > 0) report.phases.back().parent_id = i - 1;
  }
  const PhaseTree tree = BuildPhaseTree(report);
  EXPECT_EQ(tree.nodes.back().depth, 199'999);
}

}  // namespace
}  // namespace firstframe
