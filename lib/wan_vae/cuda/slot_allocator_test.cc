#include "lib/wan_vae/cuda/slot_allocator.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "gtest/gtest.h"

namespace firstframe::cuda {
namespace {

TEST(SlotAllocator, TakesTheSmallestRunThatFits) {
  SlotAllocator slots;
  const int large = slots.Take(10);
  const int wall = slots.Take(1);
  const int small = slots.Take(4);
  const int end = slots.Take(1);
  slots.Release(large);
  slots.Release(small);
  EXPECT_EQ(slots.Take(3), small);
  EXPECT_EQ(slots.Take(5), large);
  EXPECT_EQ(slots.Take(5), large + 5);
  EXPECT_EQ(slots.peak(), 16);
  slots.Release(wall);
  slots.Release(end);
}

TEST(SlotAllocator, JoinsNeighboursOnBothSides) {
  SlotAllocator slots;
  const int a = slots.Take(2);
  const int b = slots.Take(3);
  const int c = slots.Take(4);
  const int end = slots.Take(1);
  slots.Release(a);
  slots.Release(c);
  slots.Release(b);
  EXPECT_EQ(slots.Take(9), a);
  EXPECT_EQ(slots.peak(), 10);
  slots.Release(end);
}

TEST(SlotAllocator, GrowsTheRunAtTheEnd) {
  SlotAllocator slots;
  const int first = slots.Take(4);
  const int last = slots.Take(4);
  slots.Release(last);
  EXPECT_EQ(slots.Take(6), 4);
  EXPECT_EQ(slots.peak(), 10);
  slots.Release(first);
}

// Against a plain list of who owns what.
TEST(SlotAllocator, NeverGivesASlotTwice) {
  SlotAllocator slots;
  std::map<int, int> owned;  // first to length
  uint64_t state = 1;
  const auto random = [&state](int n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int>((state >> 33) % n);
  };
  int live = 0;
  int most_live = 0;
  for (int step = 0; step < 20000; ++step) {
    if (owned.empty() || random(3) > 0) {
      const int length = 1 << random(7);
      const int first = slots.Take(length);
      const auto next = owned.lower_bound(first);
      if (next != owned.end()) {
        ASSERT_LE(first + length, next->first);
      }
      if (next != owned.begin()) {
        const auto previous = std::prev(next);
        ASSERT_LE(previous->first + previous->second, first);
      }
      owned[first] = length;
      live += length;
    }
    if (owned.size() > 60 || (!owned.empty() && random(2) == 0)) {
      auto victim = owned.begin();
      std::advance(victim, random(static_cast<int>(owned.size())));
      slots.Release(victim->first);
      live -= victim->second;
      owned.erase(victim);
    }
    most_live = std::max(most_live, live);
    ASSERT_GE(slots.peak(), most_live);
  }
  EXPECT_LE(slots.peak(), 2 * most_live);
}

TEST(SlotAllocatorDeathTest, ReleasingWhatWasNotTakenStops) {
  SlotAllocator slots;
  const int first = slots.Take(2);
  EXPECT_DEATH(slots.Release(first + 1), "check failed");
}

}  // namespace
}  // namespace firstframe::cuda
