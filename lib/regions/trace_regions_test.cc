#include "lib/regions/trace_regions.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;

TEST(TraceRegions, CountsBothSpellingsAsOne) {
  const TempDir dir;
  const std::string path = dir.Write("t.json", R"([
{"ph":"X","cat":"user_annotation","name":"fastvideo.region::model_loading","ts":1,"dur":2.5},
{"ph":"X","cat":"user_annotation","name":"fastvideo.region::profiler_region_model_loading","ts":9,"dur":1},
{"ph":"X","cat":"gpu_user_annotation","name":"fastvideo.region::model_loading","ts":1,"dur":2},
{"ph":"X","cat":"user_annotation","name":"model_loading","ts":1,"dur":2},
{"ph":"B","cat":"user_annotation","name":"fastvideo.region::training_stpe","ts":20}
])");
  ASSERT_OK_AND_ASSIGN(const auto regions,
                       FindTracedRegions(path, RegionRegistry::Default()));
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].name, "model_loading");
  EXPECT_EQ(regions[0].count, 2);
  EXPECT_EQ(regions[0].total_ns, 3500);
  EXPECT_TRUE(regions[0].registered);
  EXPECT_EQ(regions[1].name, "training_stpe");
  EXPECT_EQ(regions[1].count, 1);
  EXPECT_FALSE(regions[1].registered);
  EXPECT_EQ(regions[1].nearest, "training_step");
}

TEST(TraceRegions, PassesErrorsOn) {
  EXPECT_THAT(FindTracedRegions("/no/such/trace", RegionRegistry::Default()),
              StatusIs(absl::StatusCode::kNotFound,
                       ::testing::HasSubstr("/no/such/trace")));
}

}  // namespace
}  // namespace firstframe
