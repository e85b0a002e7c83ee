#include "lib/load/choose_mode.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;

// Two H200s: every link 55, page cache 88 a rank, NVLink far above.
Roofline TwoGpus() {
  Roofline roofline;
  roofline.pinned_h2d.gb_per_s = 55;
  roofline.cached_read.gb_per_s = 88;
  roofline.direct_read.gb_per_s = 1;
  roofline.broadcast.gb_per_s = 357;
  roofline.all_gather.gb_per_s = 504;
  roofline.total_pinned_h2d = 110;
  roofline.total_cached_read = 176;
  roofline.total_direct_read = 2;
  return roofline;
}

TEST(ChooseLoadMode, OneRankHasNoChoice) {
  EXPECT_EQ(ChooseLoadMode(TwoGpus(), 1, true, 1).mode, LoadMode::kIndependent);
  EXPECT_EQ(ChooseLoadMode(TwoGpus(), 1, false, 1).mode, LoadMode::kHost);
}

TEST(ChooseLoadMode, BothLinksBeatOne) {
  const ModeChoice choice = ChooseLoadMode(TwoGpus(), 2, true, 1);
  EXPECT_EQ(choice.mode, LoadMode::kShardAllgather);
  EXPECT_THAT(choice.why,
              HasSubstr("shard_allgather 110.0 GB/s by pinned_h2d, all ranks"));
  EXPECT_THAT(choice.why, HasSubstr("independent 55.0 GB/s by pinned_h2d"));
}

TEST(ChooseLoadMode, ASlowNetworkBetweenRanksIsAvoided) {
  Roofline roofline = TwoGpus();
  roofline.broadcast.gb_per_s = 3;
  roofline.all_gather.gb_per_s = 4;
  EXPECT_EQ(ChooseLoadMode(roofline, 2, true, 1).mode, LoadMode::kIndependent);
}

TEST(ChooseLoadMode, AColdDiskIsReadOnce) {
  EXPECT_EQ(ChooseLoadMode(TwoGpus(), 2, true, 0).mode,
            LoadMode::kShardAllgather);
}

TEST(ChooseLoadMode, AGainTooSmallIsNotTaken) {
  Roofline roofline = TwoGpus();
  roofline.total_pinned_h2d = 57;
  EXPECT_EQ(ChooseLoadMode(roofline, 2, true, 1).mode, LoadMode::kIndependent);
}

TEST(ChooseLoadMode, NothingMeasured) {
  const ModeChoice choice = ChooseLoadMode(Roofline(), 2, true, 1);
  EXPECT_EQ(choice.mode, LoadMode::kIndependent);
  EXPECT_THAT(choice.why, HasSubstr("no limit measured"));
}

}  // namespace
}  // namespace firstframe
