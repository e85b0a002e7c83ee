#include "lib/load/memory_budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace firstframe {
namespace {

// cgroup v1 writes "no limit" as the largest multiple of the page size.
constexpr uint64_t kNoLimitV1 = uint64_t{1} << 62;

std::string ReadWhole(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const std::string text = ReadWhole(path);
  uint64_t value;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value)) {
    return std::nullopt;
  }
  return value;
}

// Returns the number after `key` in lines of "key 123" or "key:   123 kB".
std::optional<uint64_t> FindField(absl::string_view text,
                                  absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, key)) continue;
    if (line.empty() || (line[0] != ' ' && line[0] != ':')) continue;
    absl::ConsumePrefix(&line, ":");
    line = absl::StripAsciiWhitespace(line);
    const bool is_kib = absl::ConsumeSuffix(&line, "kB");
    uint64_t value;
    if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(line), &value)) continue;
    return is_kib ? value * 1024 : value;
  }
  return std::nullopt;
}

struct Controller {
  std::string base;   // "/sys/fs/cgroup" or "/sys/fs/cgroup/memory"
  std::string group;  // "/user.slice/x", as this process sees it
  bool is_v2 = false;
};

std::vector<Controller> FindControllers(const std::string& root) {
  std::vector<Controller> found;
  const std::string text = ReadWhole(root + "/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      found.push_back({root + "/sys/fs/cgroup", std::string(parts[2]), true});
    } else if (std::find(names.begin(), names.end(), "memory") != names.end()) {
      found.push_back(
          {root + "/sys/fs/cgroup/memory", std::string(parts[2]), false});
    }
  }
  return found;
}

void ReadGroup(const std::string& folder, bool is_v2, MemoryBudget* budget) {
  const std::optional<uint64_t> limit =
      ReadNumber(folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  if (!limit || *limit >= kNoLimitV1) return;
  const std::optional<uint64_t> charge = ReadNumber(
      folder + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  // File pages that are clean go when memory is wanted. Those on the inactive
  // list go first, and are what the kernel itself counts as available.
  const std::string stat = ReadWhole(folder + "/memory.stat");
  const uint64_t cache =
      FindField(stat, is_v2 ? "inactive_file" : "total_inactive_file")
          .value_or(0) +
      FindField(stat, is_v2 ? "active_file" : "total_active_file").value_or(0);
  const uint64_t dirty =
      FindField(stat, is_v2 ? "file_dirty" : "total_dirty").value_or(0);
  const uint64_t clean = cache - std::min(cache, dirty);
  const uint64_t used = charge.value_or(0);
  const uint64_t firm = used - std::min(used, clean);
  const uint64_t headroom = *limit - std::min(*limit, firm);
  if (!budget->cgroup_headroom_bytes ||
      headroom < *budget->cgroup_headroom_bytes) {
    budget->cgroup_limit_bytes = limit;
    budget->cgroup_headroom_bytes = headroom;
    budget->cgroup = folder;
  }
}

}  // namespace

uint64_t MemoryBudget::PinnableBytes() const {
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const std::optional<uint64_t>& bound :
       {cgroup_headroom_bytes, machine_available_bytes, memlock_limit_bytes}) {
    if (bound) least = std::min(least, *bound);
  }
  return least;
}

absl::string_view MemoryBudget::PinnableBound() const {
  const uint64_t least = PinnableBytes();
  if (memlock_limit_bytes == least) return "RLIMIT_MEMLOCK";
  if (cgroup_headroom_bytes == least) return "the cgroup's limit";
  if (machine_available_bytes == least) return "the machine's available memory";
  return "";
}

absl::Status MemoryBudget::CheckRoom(uint64_t size_bytes,
                                     absl::string_view what) const {
  if (!cgroup_headroom_bytes || size_bytes <= *cgroup_headroom_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "found ", *cgroup_headroom_bytes, " bytes left of the limit in ", cgroup,
      ", expected ", size_bytes, " for ", what));
}

MemoryBudget ReadMemoryBudget(const std::string& root) {
  MemoryBudget budget;
  for (const Controller& controller : FindControllers(root)) {
    // Every ancestor's limit holds too; inside a cgroup namespace the path ends
    // at "/", which is the container's own group.
    std::string group = controller.group;
    while (true) {
      ReadGroup(absl::StrCat(controller.base, group == "/" ? "" : group),
                controller.is_v2, &budget);
      if (group.empty() || group == "/") break;
      const size_t slash = group.rfind('/');
      if (slash == std::string::npos) break;
      group = slash == 0 ? "/" : group.substr(0, slash);
    }
  }
  budget.machine_available_bytes =
      FindField(ReadWhole(root + "/proc/meminfo"), "MemAvailable");
  struct rlimit limit;
  const std::string status = ReadWhole(root + "/proc/self/status");
  // CAP_IPC_LOCK is bit 14 of the effective set: with it there is no limit.
  uint64_t capabilities = 0;
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::ConsumePrefix(&line, "CapEff:")) continue;
    (void)absl::SimpleHexAtoi(absl::StripAsciiWhitespace(line), &capabilities);
  }
  const bool may_lock = (capabilities >> 14) & 1;
  if (!may_lock && ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
      limit.rlim_cur != RLIM_INFINITY) {
    budget.memlock_limit_bytes = limit.rlim_cur;
  }
  return budget;
}

}  // namespace firstframe
