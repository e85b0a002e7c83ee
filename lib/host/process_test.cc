#include "lib/host/process.h"

#include <time.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

int64_t Now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

TEST(ParseStartTicks, SkipsTheNameWhateverItHolds) {
  const std::string tail =
      " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21\n";
  EXPECT_EQ(ParseStartTicks("12 (vae_startup)" + tail), 4242);
  EXPECT_EQ(ParseStartTicks("12 (a) b ) (c)" + tail), 4242);
  EXPECT_EQ(ParseStartTicks("12 (short) S 1 2"), std::nullopt);
  EXPECT_EQ(ParseStartTicks(""), std::nullopt);
}

TEST(ReadProcessStart, LiesInThePastAndInOrder) {
  const auto start = ReadProcessStart();
  ASSERT_TRUE(start.has_value());
  EXPECT_FALSE(start->is_exact);
  EXPECT_LE(start->earliest_ns, start->latest_ns);
  EXPECT_LE(start->latest_ns, Now());
}

TEST(ReadProcessStart, TakesTheLaunchersWordWhenItCanBeTrue) {
  const auto bounds = ReadProcessStart();
  ASSERT_TRUE(bounds.has_value());
  const auto exact = ReadProcessStart(bounds->latest_ns);
  EXPECT_TRUE(exact->is_exact);
  EXPECT_EQ(exact->best_ns(), bounds->latest_ns);
  EXPECT_EQ(exact->resolution_ns(), 0);
  EXPECT_FALSE(ReadProcessStart(Now() + 1'000'000'000)->is_exact);
  EXPECT_FALSE(ReadProcessStart(bounds->earliest_ns - 1'000'000'000)->is_exact);
}

TEST(ReadResourceUsage, CountsThisProcess) {
  const ResourceUsage usage = ReadResourceUsage();
  EXPECT_GT(usage.max_resident_bytes, 1 << 20);
  EXPECT_GT(usage.minor_faults, 0);
}

TEST(ReadResidentBytes, FollowsWhatIsTouched) {
  const int64_t before = ReadResidentBytes();
  EXPECT_GT(before, 0);
  const std::vector<char> touched(64 << 20, 1);
  EXPECT_GE(ReadResidentBytes(), before + (60 << 20)) << touched.size();
}

}  // namespace
}  // namespace firstframe
