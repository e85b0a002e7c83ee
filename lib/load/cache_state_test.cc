#include "lib/load/cache_state.h"

#include "gtest/gtest.h"
#include "lib/load/testing_checkpoint.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::RandomCheckpoint;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CacheState, ColdAndWarmAreProven) {
  const RandomCheckpoint checkpoint(5);
  ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(checkpoint.source));
  ASSERT_OK_AND_ASSIGN(OpenedSources sources,
                       OpenSources(plan, PathPolicy::kCached));
  const absl::StatusOr<Residency> cold =
      PrepareCache(sources, CacheMode::kCold);
  if (cold.ok()) {
    EXPECT_LE(*cold->fraction(), 0.01);
  } else {
    EXPECT_THAT(cold, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("cold")));
  }
  ASSERT_OK_AND_ASSIGN(const Residency warm,
                       PrepareCache(sources, CacheMode::kWarm));
  EXPECT_EQ(warm.fraction(), 1.0);
  EXPECT_THAT(PrepareCache(sources, CacheMode::kAsIs), IsOk());
}

TEST(CacheState, AServersCacheIsOutOfReach) {
  const RandomCheckpoint checkpoint(5);
  ASSERT_OK_AND_ASSIGN(const LoadPlan plan, MakeLoadPlan(checkpoint.source));
  ASSERT_OK_AND_ASSIGN(OpenedSources sources,
                       OpenSources(plan, PathPolicy::kCached));
  sources.files[1].file_system.kind = FileSystemKind::kNetwork;
  sources.files[1].file_system.type = "nfs4";
  EXPECT_THAT(PrepareCache(sources, CacheMode::kCold),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("nfs4 has a server")));
}

TEST(CacheState, Parses) {
  ASSERT_OK_AND_ASSIGN(const CacheMode mode, ParseCacheMode("cold"));
  EXPECT_EQ(mode, CacheMode::kCold);
  EXPECT_THAT(ParseCacheMode("hot"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'hot'")));
}

}  // namespace
}  // namespace firstframe
