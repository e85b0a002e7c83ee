#include "lib/dist/local_collective.h"

#include <functional>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "lib/dist/collective_test_util.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::ExerciseGroup;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// Runs `work` on every rank of a group in its own thread.
std::vector<absl::Status> RunRanks(
    int size, absl::Duration timeout,
    const std::function<absl::Status(Collective&)>& work) {
  std::vector<std::unique_ptr<Collective>> group =
      MakeLocalGroup(size, timeout);
  std::vector<absl::Status> results(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      results[r] = work(*group[r]);
      group[r].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(LocalCollective, MovesBytesAndStrings) {
  for (const int size : {1, 2, 3, 5}) {
    for (const absl::Status& status :
         RunRanks(size, absl::Seconds(20), ExerciseGroup)) {
      EXPECT_THAT(status, IsOk());
    }
  }
}

TEST(LocalCollective, AFailingRankEndsTheOthersWait) {
  const auto results =
      RunRanks(3, absl::Seconds(60), [](Collective& group) -> absl::Status {
        if (group.rank() == 1) {
          const absl::Status status = absl::DataLossError("disk gone");
          group.Fail(status);
          return status;
        }
        char byte = 0;
        return group.Broadcast(&byte, 1, 1);
      });
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kAborted,
                                   HasSubstr("rank 1 failed: disk gone")));
  EXPECT_THAT(results[2],
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1 failed")));
}

TEST(LocalCollective, AVanishedRankEndsTheOthersWait) {
  const auto results =
      RunRanks(3, absl::Seconds(60), [](Collective& group) -> absl::Status {
        if (group.rank() == 2) return absl::OkStatus();
        return Barrier(group);
      });
  EXPECT_THAT(results[0],
              StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 2 left")));
}

TEST(LocalCollective, AStuckRankIsATimeout) {
  const auto results =
      RunRanks(2, absl::Milliseconds(50), [](Collective& group) {
        if (group.rank() == 1) absl::SleepFor(absl::Milliseconds(300));
        return Barrier(group);
      });
  EXPECT_THAT(results[0], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                   HasSubstr("1 of 2 ranks")));
  EXPECT_FALSE(results[1].ok());
}

TEST(Collective, AgreeGivesAllTheSameError) {
  const auto results = RunRanks(4, absl::Seconds(20), [](Collective& group) {
    return Agree(group, group.rank() >= 2 ? absl::NotFoundError("no file")
                                          : absl::OkStatus());
  });
  for (const absl::Status& status : results) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                                 HasSubstr("rank 2: no file")));
  }
}

TEST(Collective, SoleRankIsAlwaysDone) {
  const auto group = MakeSoleCollective(MemoryKind::kHost);
  EXPECT_THAT(ExerciseGroup(*group), IsOk());
  group->Fail(absl::DataLossError("x"));
  EXPECT_THAT(Barrier(*group),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("x")));
}

}  // namespace
}  // namespace firstframe
