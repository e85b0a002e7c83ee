// How many CPUs' worth of time this process gets.

#ifndef LIB_HOST_CPU_BUDGET_H_
#define LIB_HOST_CPU_BUDGET_H_

#include <string>

namespace firstframe {

// Returns the CPUs' worth of time that control groups grant this process, the
// least along the way from its own group to the root; 0 when unlimited or
// unknown. Version 2: cpu.max, in the group of /proc/self/cgroup and its
// parents. Version 1: cpu.cfs_quota_us over cpu.cfs_period_us, likewise. In a
// container the group is often mounted as the root: that is looked at, too.
// `root` is put in front of the files' paths (tests). Source: Linux,
// Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst.
double CgroupCpuQuota(const std::string& root = "");

// Returns how many threads can compute at once: the CPUs that the process may
// run on (sched_getaffinity), at most the whole CPUs of the quota, at least 1.
// More threads than the quota has CPUs would all be stopped, for a part of each
// period, in the middle of what the others wait for.
int CpuBudget(const std::string& root = "");

}  // namespace firstframe

#endif  // LIB_HOST_CPU_BUDGET_H_
