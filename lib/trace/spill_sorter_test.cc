#include "lib/trace/spill_sorter.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;

struct Item {
  int32_t key;
  int32_t order;
};
struct ByKey {
  bool operator()(const Item& a, const Item& b) const { return a.key < b.key; }
};

void CheckSorted(int count, size_t memory, bool spills) {
  SpillSorter<Item, ByKey> sorter(memory, ::testing::TempDir());
  std::mt19937 random(7);
  for (int i = 0; i < count; ++i) {
    ASSERT_THAT(sorter.Add({static_cast<int32_t>(random() % 100), i}), IsOk());
  }
  ASSERT_THAT(sorter.Sort(), IsOk());
  EXPECT_EQ(sorter.spilled(), spills);
  EXPECT_EQ(sorter.size(), count);
  Item last = {-1, -1}, item;
  int seen = 0;
  while (sorter.Next(&item)) {
    ASSERT_TRUE(last.key < item.key ||
                (last.key == item.key && last.order < item.order))
        << seen;
    last = item;
    ++seen;
  }
  EXPECT_THAT(sorter.status(), IsOk());
  EXPECT_EQ(seen, count);
}

TEST(SpillSorter, InMemory) {
  CheckSorted(0, 1 << 20, false);
  CheckSorted(1, 1 << 20, false);
  CheckSorted(5000, 1 << 20, false);
}

TEST(SpillSorter, SpillsAndStaysStable) {
  // 1,024 records a run; the last run is full, then nearly empty.
  CheckSorted(1024 * 20, 0, true);
  CheckSorted(1024 * 20 + 1, 0, true);
}

TEST(SpillSorter, ReportsAFolderThatIsNotThere) {
  SpillSorter<Item, ByKey> sorter(0, "/no/such/folder");
  absl::Status status;
  for (int i = 0; i <= 1024 && status.ok(); ++i) status = sorter.Add({i, i});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace firstframe
