#include "lib/timing/clock.h"

#include "gtest/gtest.h"
#include "lib/testing/fake_clock.h"

namespace firstframe {
namespace {

TEST(MonotonicClock, NeverGoesBackAndMoves) {
  const Clock& clock = MonotonicClock::Get();
  const int64_t first = clock.NowNs();
  int64_t previous = first;
  while (previous == first) {
    const int64_t now = clock.NowNs();
    ASSERT_GE(now, previous);
    previous = now;
  }
}

TEST(FakeClock, MovesOnlyWhenTold) {
  testing::FakeClock clock(100);
  EXPECT_EQ(clock.NowNs(), 100);
  clock.Advance(5);
  EXPECT_EQ(clock.NowNs(), 105);
  EXPECT_EQ(clock.NowNs(), 105);
  clock.SetStep(2);
  EXPECT_EQ(clock.NowNs(), 105);
  EXPECT_EQ(clock.NowNs(), 107);
}

}  // namespace
}  // namespace firstframe
