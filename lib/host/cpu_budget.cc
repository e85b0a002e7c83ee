#include "lib/host/cpu_budget.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Words(const std::string& path) {
  return absl::StrSplit(ReadText(path), absl::ByAnyChar(" \n"),
                        absl::SkipEmpty());
}

// Returns quota over period, or 0 when they are no limit ("max", -1, absent).
double Ratio(const std::string& quota, const std::string& period) {
  double q = 0;
  double p = 0;
  if (!absl::SimpleAtod(quota, &q) || !absl::SimpleAtod(period, &p) ||
      !(q > 0) || !(p > 0)) {
    return 0;
  }
  return q / p;
}

// The quota that the group at `folder` sets itself.
double QuotaOf(const std::string& folder) {
  const std::vector<std::string> max = Words(folder + "/cpu.max");
  if (max.size() == 2) return Ratio(max[0], max[1]);
  const std::vector<std::string> quota = Words(folder + "/cpu.cfs_quota_us");
  const std::vector<std::string> period = Words(folder + "/cpu.cfs_period_us");
  return quota.size() == 1 && period.size() == 1 ? Ratio(quota[0], period[0])
                                                 : 0;
}

// The least quota of `mount`/`group` and of every group above it.
double LeastQuota(const std::string& mount, std::string group) {
  double least = 0;
  while (true) {
    const double quota = QuotaOf(absl::StrCat(mount, group));
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (group.empty()) return least;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

bool NamesCpu(absl::string_view controllers) {
  for (const absl::string_view name : absl::StrSplit(controllers, ',')) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

double CgroupCpuQuota(const std::string& root) {
  double least = 0;
  const auto consider = [&](const std::string& mount, std::string group) {
    // "/" and ".." (a group outside this namespace) are the mount itself.
    if (group == "/" || absl::StrContains(group, "..")) group.clear();
    const double quota =
        LeastQuota(absl::StrCat(root, "/sys/fs/cgroup", mount), group);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
  };
  consider("", "");
  const std::string groups = ReadText(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    // hierarchy:controllers:path; version 2 is hierarchy 0 without controllers.
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    if (parts[1].empty()) {
      consider("", parts[2]);
    } else if (NamesCpu(parts[1])) {
      consider("/cpu", parts[2]);
      consider(absl::StrCat("/", parts[1]), parts[2]);
    }
  }
  return least;
}

int CpuBudget(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int usable = ::sched_getaffinity(0, sizeof(set), &set) == 0
                         ? CPU_COUNT(&set)
                         : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const double quota = CgroupCpuQuota(root);
  const double capped =
      quota > 0 ? std::min<double>(usable, quota) : static_cast<double>(usable);
  return std::max(1, static_cast<int>(capped));
}

}  // namespace firstframe
