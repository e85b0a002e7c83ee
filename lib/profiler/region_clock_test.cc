#include "lib/profiler/region_clock.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(RegionClock, KnowsTheInnermostRegionOfTheThread) {
  RegionClock clock;
  EXPECT_EQ(clock.RegionAt(5, 1), 0u);
  clock.Open(10, 1, 100);
  clock.Open(20, 2, 100);
  EXPECT_EQ(clock.last_open(), 2u);
  clock.Close(30, 2);
  EXPECT_EQ(clock.last_open(), 1u);
  clock.Close(40, 1);
  EXPECT_EQ(clock.last_open(), 0u);
  EXPECT_EQ(clock.RegionAt(9, 100), 0u);
  EXPECT_EQ(clock.RegionAt(10, 100), 1u);
  EXPECT_EQ(clock.RegionAt(19, 100), 1u);
  EXPECT_EQ(clock.RegionAt(20, 100), 2u);
  EXPECT_EQ(clock.RegionAt(30, 100), 1u);
  EXPECT_EQ(clock.RegionAt(39, 100), 1u);
  EXPECT_EQ(clock.RegionAt(40, 100), 0u);
}

TEST(RegionClock, ThreadsHaveTheirOwnAndOthersTheLast) {
  RegionClock clock;
  clock.Open(10, 1, 100);
  clock.Open(20, 2, 200);
  EXPECT_EQ(clock.RegionAt(25, 100), 1u);
  EXPECT_EQ(clock.RegionAt(25, 200), 2u);
  EXPECT_EQ(clock.RegionAt(25, 300), 2u) << "a thread without one";
  clock.Close(30, 2);
  EXPECT_EQ(clock.RegionAt(35, 200), 1u);
  clock.Close(40, 2);  // not open any more
  EXPECT_EQ(clock.last_open(), 1u);
}

TEST(RegionClock, LateTimesDoNotDisorderIt) {
  RegionClock clock;
  clock.Open(20, 1, 100);
  clock.Open(15, 2, 200);  // read before, entered after
  clock.Close(18, 2);
  EXPECT_EQ(clock.RegionAt(19, 100), 0u);
  EXPECT_EQ(clock.RegionAt(20, 100), 1u);
  EXPECT_EQ(clock.RegionAt(20, 200), 1u);
}

TEST(RegionClock, ForgetsTheOldest) {
  RegionClock clock;
  for (uint32_t i = 0; i < RegionClock::kMaxChanges; ++i) {
    clock.Open(10 * i, i + 1, 1);
    clock.Close(10 * i + 5, i + 1);
  }
  EXPECT_EQ(clock.RegionAt(0, 1), 0u);
  const uint32_t last = RegionClock::kMaxChanges - 1;
  EXPECT_EQ(clock.RegionAt(10 * last + 1, 1), last + 1);
}

}  // namespace
}  // namespace firstframe
