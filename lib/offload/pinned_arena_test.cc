#include "lib/offload/pinned_arena.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/load/memory_budget.h"
#include "lib/testing/fake_cuda.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::FakeCuda;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

TEST(PinnedArena, IsPinnedWhole) {
  FakeCuda cuda;
  {
    ASSERT_OK_AND_ASSIGN(PinnedArena arena, PinnedArena::Create(3 * kMiB, 2));
    arena.Pin(PinOptions(), cuda);
    EXPECT_EQ(arena.region().pinned_bytes(), 3 * kMiB);
    EXPECT_EQ(arena.region().note(), "");
    EXPECT_THAT(arena.region().cuts(), ElementsAre());
    EXPECT_EQ(cuda.calls("RegisterHost"), 1);
  }
  EXPECT_EQ(cuda.calls("UnregisterHost"), 1);
}

TEST(PinnedArena, TheLesserOfBudgetAndOptionHolds) {
  FakeCuda cuda;
  for (const uint64_t option : {2 * kMiB, 100 * kMiB}) {
    for (const uint64_t memlock : {4 * kMiB, 100 * kMiB}) {
      MemoryBudget budget;
      budget.memlock_limit_bytes = memlock;
      ASSERT_OK_AND_ASSIGN(PinnedArena arena,
                           PinnedArena::Create(6 * kMiB, 1, budget));
      PinOptions options;
      options.budget_bytes = option;
      arena.Pin(options, cuda);
      EXPECT_EQ(arena.region().pinned_bytes(),
                std::min({option, memlock, 6 * kMiB}));
      EXPECT_EQ(arena.region().note().empty(),
                arena.region().pinned_bytes() == 6 * kMiB);
      if (!arena.region().note().empty()) {
        EXPECT_THAT(
            arena.region().note(),
            HasSubstr(option < memlock ? "is 2097152 (as asked)"
                                       : "is 4194304 (RLIMIT_MEMLOCK)"));
      }
    }
  }
}

// The room is what there was before the arena took its own part of it.
TEST(PinnedArena, MostOfWhatIsLeftCanBePinned) {
  FakeCuda cuda;
  MemoryBudget budget;
  budget.cgroup_headroom_bytes = 7 * kMiB;
  budget.machine_available_bytes = 6 * kMiB;
  ASSERT_OK_AND_ASSIGN(PinnedArena arena,
                       PinnedArena::Create(6 * kMiB, 1, budget));
  arena.Pin(PinOptions(), cuda);
  EXPECT_EQ(arena.region().pinned_bytes(), 6 * kMiB);
}

TEST(PinnedArena, MoreThanTheCgroupAllowsIsRefusedBeforeItIsTouched) {
  MemoryBudget budget;
  budget.cgroup_headroom_bytes = 5 * kMiB;
  budget.cgroup = "/sys/fs/cgroup/job";
  EXPECT_THAT(PinnedArena::Create(6 * kMiB, 1, budget),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("found 5242880 bytes left of the limit in "
                                 "/sys/fs/cgroup/job, expected 6291456")));
}

TEST(PinnedArena, PinningAgainReplacesTheFirst) {
  FakeCuda cuda;
  ASSERT_OK_AND_ASSIGN(PinnedArena arena, PinnedArena::Create(4 * kMiB, 1));
  PinOptions options;
  options.max_piece_bytes = 2 * kMiB;
  arena.Pin(options, cuda);
  EXPECT_THAT(arena.region().cuts(), ElementsAre(arena.data() + 2 * kMiB));
  arena.Pin({.pin = false}, cuda);
  EXPECT_EQ(arena.region().pinned_bytes(), 0u);
  EXPECT_EQ(arena.region().note(), "not pinned: not asked for");
  EXPECT_EQ(cuda.calls("UnregisterHost"), 2);
}

}  // namespace
}  // namespace firstframe
