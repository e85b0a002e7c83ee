#include "lib/profiler/tick_clock.h"

#include <time.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

void Check(bool use_counter) {
  TickClock clock(use_counter);
  const timespec pause = {0, 50'000'000};
  const int64_t begin_ns = TickClock::MonotonicNs();
  const int64_t begin = clock.Now();
  ::nanosleep(&pause, nullptr);
  const int64_t end = clock.Now();
  const int64_t end_ns = TickClock::MonotonicNs();
  clock.Calibrate();
  EXPECT_GT(end, begin);
  // The bracketing reads may be interrupted; a thousandth of the span and 0.1
  // ms leave room for that, not for a wrong rate or origin.
  EXPECT_NEAR(clock.ToNs(end) - clock.ToNs(begin), end_ns - begin_ns, 200'000);
  EXPECT_NEAR(clock.ToNs(begin), begin_ns, 200'000);
}

TEST(TickClock, FollowsMonotonic) { Check(false); }

TEST(TickClock, TheCounterFollowsMonotonic) {
  if (!TickClock::CounterIsReliable()) GTEST_SKIP() << "no invariant counter";
  Check(true);
}

}  // namespace
}  // namespace firstframe
