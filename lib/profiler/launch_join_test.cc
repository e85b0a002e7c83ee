#include "lib/profiler/launch_join.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

GpuWork Work(uint32_t correlation, int64_t start_ns = 0) {
  GpuWork work;
  work.correlation = correlation;
  work.start_ns = start_ns;
  return work;
}

class LaunchJoinTest : public ::testing::Test {
 protected:
  void Take(const GpuWork& work, bool keep) {
    taken_.push_back(absl::StrCat(work.correlation, keep ? " kept in " : " out",
                                  keep ? absl::StrCat(work.region) : ""));
  }
  std::vector<std::string> taken_;
};

TEST_F(LaunchJoinTest, EitherMayComeFirst) {
  const auto take = [&](const GpuWork& w, bool keep) { Take(w, keep); };
  LaunchJoin join(false);
  join.AddLaunch(1, true, 9, take);
  join.AddLaunch(2, false, 0, take);
  join.AddLaunch(3, true, 0, take);
  for (uint32_t i = 1; i <= 3; ++i) join.AddWork(Work(i), 0, take);
  EXPECT_THAT(taken_, ElementsAre("1 kept in 9", "2 out", "3 kept in 0"));
  taken_.clear();
  join.AddWork(Work(4), 0, take);
  join.AddWork(Work(5), 0, take);
  join.AddWork(Work(4), 0, take);  // a graph's second kernel
  EXPECT_THAT(taken_, IsEmpty());
  join.AddLaunch(5, false, 0, take);
  join.AddLaunch(4, true, 7, take);
  join.AddWork(Work(4), 0, take);
  EXPECT_THAT(taken_, ElementsAre("5 out", "4 kept in 7", "4 kept in 7",
                                  "4 kept in 7"));
}

TEST_F(LaunchJoinTest, WorkWithoutALaunchIsGivenUpByAge) {
  const auto take = [&](const GpuWork& w, bool keep) { Take(w, keep); };
  LaunchJoin drop(false), keep(true);
  for (LaunchJoin* join : {&drop, &keep}) {
    join->AddWork(Work(1), 10, take);
    join->AddWork(Work(2), 20, take);
    join->GiveUp(15, take);
    join->AddLaunch(2, true, 3, take);
    join->GiveUp(INT64_MAX, take);
    EXPECT_EQ(join->waiting_count(), 0u);
  }
  EXPECT_THAT(taken_, ElementsAre("1 out", "2 kept in 3", "1 kept in 0",
                                  "2 kept in 3"));
}

TEST_F(LaunchJoinTest, HoldsABoundedNumber) {
  int64_t out = 0;
  const auto take = [&](const GpuWork&, bool keep) { out += !keep; };
  LaunchJoin join(false);
  for (uint32_t i = 0; i < 300'000; ++i) join.AddWork(Work(i), i, take);
  EXPECT_EQ(join.waiting_count(), size_t{256} << 10);
  EXPECT_EQ(out, 300'000 - (256 << 10));
  // A graph's launch has many works under one id.
  LaunchJoin graph(false);
  for (int i = 0; i < 300'000; ++i) graph.AddWork(Work(i % 2), i, take);
  EXPECT_LE(graph.waiting_count(), size_t{256} << 10);
}

}  // namespace
}  // namespace firstframe
