#include "lib/startup/weight_reader.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/phase/phase.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/load_weights.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::VaeTestdata;
using ::testing::HasSubstr;

TEST(WeightReader, ReadsBesideThisThreadAndOnALaneOfItsOwn) {
  ASSERT_OK_AND_ASSIGN(const VaeComponent component,
                       FindVaeComponent(VaeTestdata("tiny_vae")));
  PhaseRecorder recorder;
  {
    const PhaseCollector collector(&recorder);
    WeightReader reader(component, 1, {});
    { const ScopedPhase phase("device_setup"); }
    ASSERT_OK_AND_ASSIGN(const VaeWeights weights, reader.Take());
    EXPECT_EQ(weights.values.size(),
              BuildModuleTree(component.config).parameters.size());
    EXPECT_EQ(weights.size_bytes, 13861u * 4);
  }
  const PhaseReport report = recorder.Report();
  const auto found = std::find_if(
      report.phases.begin(), report.phases.end(),
      [](const auto& phase) { return phase.name == "vae.checkpoint_read"; });
  ASSERT_NE(found, report.phases.end());
  ASSERT_EQ(report.lanes.size(), 2u);
  EXPECT_EQ(report.lanes[found->lane].name, "weights");
}

TEST(WeightReader, SaysWhatIsWrong) {
  VaeComponent component;
  component.checkpoint = "/no/such/folder";
  WeightReader reader(component, 1, {});
  EXPECT_THAT(reader.Take(), StatusIs(absl::StatusCode::kNotFound,
                                      HasSubstr("/no/such/folder")));
}

TEST(WeightReader, EndsWhenCancelledOrAbandoned) {
  ASSERT_OK_AND_ASSIGN(const VaeComponent component,
                       FindVaeComponent(VaeTestdata("tiny_vae")));
  { const WeightReader abandoned(component, 1, {}); }
  WeightReader reader(component, 1, [] { return true; });
  EXPECT_THAT(reader.Take(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

}  // namespace
}  // namespace firstframe
