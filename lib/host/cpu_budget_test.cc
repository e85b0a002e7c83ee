#include "lib/host/cpu_budget.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::TempDir;

TEST(CgroupCpuQuota, VersionTwoInAContainer) {
  TempDir root;
  root.Write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 1.5);
  EXPECT_EQ(CpuBudget(root.path()), 1);
}

TEST(CgroupCpuQuota, TheLeastOnTheWayToTheRootCounts) {
  TempDir root;
  root.Write("proc/self/cgroup", "0::/user.slice/job.scope/inner\n");
  root.Write("sys/fs/cgroup/user.slice/cpu.max", "300000 100000\n");
  root.Write("sys/fs/cgroup/user.slice/job.scope/cpu.max", "200000 100000\n");
  root.Write("sys/fs/cgroup/user.slice/job.scope/inner/cpu.max",
             "max 100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2);
}

TEST(CgroupCpuQuota, VersionOne) {
  TempDir root;
  root.Write("proc/self/cgroup",
             "12:cpuset:/\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us",
             "250000\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us",
             "100000\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CgroupCpuQuota(root.path()), 2.5);
}

TEST(CgroupCpuQuota, UnlimitedUnknownAndNonsenseAreNoLimit) {
  const char* const texts[] = {"max 100000\n", "",          "0 100000\n",
                               "-5 100000\n",  "100000\n",  "100000 0\n",
                               "nan nan\n",    "a b c d\n", "inf 100000\n"};
  const int all = CpuBudget("/no/such/root");
  EXPECT_GE(all, 1);
  for (const char* const text : texts) {
    TempDir root;
    root.Write("proc/self/cgroup", "0::/../other\nnonsense\n::\n");
    root.Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(CpuBudget(root.path()), all) << text;
  }
}

TEST(CpuBudget, IsAtLeastOneAndAtMostWhatTheProcessMayRunOn) {
  TempDir root;
  root.Write("sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(CpuBudget(root.path()), 1);
  root.Write("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(CpuBudget(root.path()), CpuBudget("/no/such/root"));
}

}  // namespace
}  // namespace firstframe
