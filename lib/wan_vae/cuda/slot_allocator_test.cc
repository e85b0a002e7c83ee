#include "lib/wan_vae/cuda/slot_allocator.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe::cuda {
namespace {

TEST(SlotAllocator, RunsThatAreNotAliveTogetherShareSlots) {
  SlotAllocator slots;
  const int a = slots.Take(3);
  slots.Release(a);
  const int b = slots.Take(3);
  const auto placement = slots.Place();
  EXPECT_EQ(placement.first[a], 0);
  EXPECT_EQ(placement.first[b], 0);
  EXPECT_EQ(placement.slots, 3);
  EXPECT_EQ(slots.most_alive(), 3);
}

// Placed run by run, `small` would lie where the second half of `large` must
// go.
TEST(SlotAllocator, MakesRoomForWhatComesLater) {
  SlotAllocator slots;
  const int early = slots.Take(4);
  slots.Release(early);
  const int small = slots.Take(1);
  const int large = slots.Take(8);
  const auto placement = slots.Place();
  EXPECT_EQ(placement.first[large], 0);
  EXPECT_EQ(placement.first[small], 8);
  EXPECT_EQ(placement.slots, slots.most_alive());
}

TEST(SlotAllocator, FillsGaps) {
  SlotAllocator slots;
  const int a = slots.Take(60);
  const int b = slots.Take(50);
  slots.Release(a);
  const int c = slots.Take(20);
  const int d = slots.Take(40);
  const auto placement = slots.Place();
  EXPECT_EQ(placement.slots, 110);
  EXPECT_NE(placement.first[c], placement.first[d]);
  slots.Release(b);
  slots.Release(c);
}

TEST(SlotAllocator, OfNothingIsNothing) {
  EXPECT_EQ(SlotAllocator().Place().slots, 0);
}

struct Life {
  int slots, begin, end;
};

// Against every pair.
TEST(SlotAllocator, NoTwoAliveRunsShareASlot) {
  SlotAllocator slots;
  std::vector<Life> lives;
  std::vector<int> alive;
  uint64_t state = 1;
  const auto random = [&state](int n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int>((state >> 33) % n);
  };
  for (int step = 0; step < 3000; ++step) {
    if (alive.empty() || random(2) > 0) {
      const int size = 1 << random(7);
      const int run = slots.Take(size);
      ASSERT_EQ(run, static_cast<int>(lives.size()));
      lives.push_back({size, step, 3000});
      alive.push_back(run);
    }
    if (alive.size() > 60 || (!alive.empty() && random(2) == 0)) {
      const int at = random(static_cast<int>(alive.size()));
      slots.Release(alive[at]);
      lives[alive[at]].end = step;
      alive.erase(alive.begin() + at);
    }
  }
  const auto placement = slots.Place();
  for (size_t i = 0; i < lives.size(); ++i) {
    ASSERT_GE(placement.first[i], 0);
    ASSERT_LE(placement.first[i] + lives[i].slots, placement.slots);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          lives[i].begin < lives[j].end && lives[j].begin < lives[i].end;
      if (!together) continue;
      ASSERT_TRUE(placement.first[i] + lives[i].slots <= placement.first[j] ||
                  placement.first[j] + lives[j].slots <= placement.first[i])
          << i << " and " << j;
    }
  }
  EXPECT_LE(placement.slots, 1.2 * slots.most_alive());
}

TEST(SlotAllocatorDeathTest, ReleasingWhatIsNotTakenStops) {
  SlotAllocator slots;
  const int run = slots.Take(2);
  EXPECT_DEATH(slots.Release(run + 1), "check failed");
  slots.Release(run);
  EXPECT_DEATH(slots.Release(run), "check failed");
}

}  // namespace
}  // namespace firstframe::cuda
