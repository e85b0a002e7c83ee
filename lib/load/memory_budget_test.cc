#include "lib/load/memory_budget.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;

constexpr uint64_t kMiB = 1 << 20;

TEST(MemoryBudget, SubtractsCleanCacheFromAVersion2Charge) {
  TempDir dir;
  dir.Write("proc/self/cgroup", "0::/job/step\n");
  dir.Write("sys/fs/cgroup/job/step/memory.max", "1073741824\n");
  dir.Write("sys/fs/cgroup/job/step/memory.current", "943718400\n");  // 900 MiB
  dir.Write("sys/fs/cgroup/job/step/memory.stat",
            "anon 100\ninactive_file 419430400\nactive_file 104857600\n"
            "file_dirty 104857600\ninactive_file_x 7\n");
  const MemoryBudget budget = ReadMemoryBudget(dir.path());
  EXPECT_EQ(budget.cgroup_limit_bytes, 1024 * kMiB);
  // 900 charged, 500 of it file pages, 100 of those dirty: 500 are firm.
  EXPECT_EQ(budget.cgroup_headroom_bytes, 524 * kMiB);
  EXPECT_LE(budget.PinnableBytes(), 524 * kMiB);
}

TEST(MemoryBudget, AnAncestorsSmallerLimitBinds) {
  TempDir dir;
  dir.Write("proc/self/cgroup", "0::/job/step\n");
  dir.Write("sys/fs/cgroup/job/step/memory.max", "max\n");
  dir.Write("sys/fs/cgroup/job/memory.max", "209715200\n");
  dir.Write("sys/fs/cgroup/job/memory.current", "104857600\n");
  const MemoryBudget budget = ReadMemoryBudget(dir.path());
  EXPECT_EQ(budget.cgroup_headroom_bytes, 100 * kMiB);
  EXPECT_NE(budget.cgroup.find("/job"), std::string::npos);
}

TEST(MemoryBudget, Version1AndItsNoLimit) {
  TempDir dir;
  dir.Write("proc/self/cgroup", "4:cpu,memory:/a\n0::/\n");
  dir.Write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "52428800\n");
  dir.Write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "62914560\n");
  dir.Write("sys/fs/cgroup/memory/a/memory.stat", "total_inactive_file 0\n");
  dir.Write("sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n");
  const MemoryBudget budget = ReadMemoryBudget(dir.path());
  EXPECT_EQ(budget.cgroup_limit_bytes, 50 * kMiB);
  EXPECT_EQ(budget.cgroup_headroom_bytes, 0u) << "over its limit";
}

TEST(MemoryBudget, NothingReadableIsNoLimit) {
  TempDir dir;
  const MemoryBudget budget = ReadMemoryBudget(dir.path());
  EXPECT_EQ(budget.cgroup_limit_bytes, std::nullopt);
  EXPECT_EQ(budget.machine_available_bytes, std::nullopt);
}

TEST(MemoryBudget, LockingIsUnlimitedWithTheCapability) {
  TempDir dir;
  dir.Write("proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  EXPECT_EQ(ReadMemoryBudget(dir.path()).memlock_limit_bytes, std::nullopt);
}

TEST(MemoryBudget, TheLeastBindsAndHasAName) {
  MemoryBudget budget;
  EXPECT_EQ(std::string(budget.PinnableBound()), "");
  budget.machine_available_bytes = 300;
  EXPECT_EQ(std::string(budget.PinnableBound()),
            "the machine's available memory");
  budget.cgroup_headroom_bytes = 200;
  EXPECT_EQ(std::string(budget.PinnableBound()), "the cgroup's limit");
  budget.memlock_limit_bytes = 100;
  EXPECT_EQ(std::string(budget.PinnableBound()), "RLIMIT_MEMLOCK");
  EXPECT_EQ(budget.PinnableBytes(), 100u);
}

TEST(MemoryBudget, RoomIsWhatTheCgroupLeaves) {
  MemoryBudget budget;
  budget.machine_available_bytes = 10;
  EXPECT_THAT(budget.CheckRoom(100, "x"), testing::IsOk());
  budget.cgroup = "/sys/fs/cgroup/job";
  budget.cgroup_headroom_bytes = 100;
  EXPECT_THAT(budget.CheckRoom(100, "x"), testing::IsOk());
  EXPECT_THAT(budget.CheckRoom(101, "the host copy"),
              testing::StatusIs(absl::StatusCode::kResourceExhausted,
                                ::testing::HasSubstr(
                                    "found 100 bytes left of the limit in "
                                    "/sys/fs/cgroup/job, expected 101 for the "
                                    "host copy")));
}

TEST(MemoryBudget, ThisProcess) {
  const MemoryBudget budget = ReadMemoryBudget();
  ASSERT_TRUE(budget.machine_available_bytes.has_value());
  EXPECT_GT(*budget.machine_available_bytes, kMiB);
}

}  // namespace
}  // namespace firstframe
