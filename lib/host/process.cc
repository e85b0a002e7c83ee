#include "lib/host/process.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace firstframe {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t ReadClock(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

int64_t ToNs(const timeval& time) {
  return time.tv_sec * kNsPerSecond + time.tv_usec * 1000;
}

}  // namespace

std::optional<int64_t> ParseStartTicks(absl::string_view stat) {
  // Fields are counted from the last ')': the name before it is free text.
  const size_t name_end = stat.rfind(')');
  if (name_end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> fields = absl::StrSplit(
      stat.substr(name_end + 1), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  constexpr size_t kStartTime = 22 - 3;  // field 3 follows the name
  int64_t ticks = 0;
  if (fields.size() <= kStartTime ||
      !absl::SimpleAtoi(fields[kStartTime], &ticks) || ticks < 0) {
    return std::nullopt;
  }
  return ticks;
}

std::optional<ProcessStart> ReadProcessStart(
    std::optional<int64_t> launched_ns) {
  const int64_t now = ReadClock(CLOCK_MONOTONIC);
  const int64_t used = ReadClock(CLOCK_PROCESS_CPUTIME_ID);
  std::ifstream file("/proc/self/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  const std::optional<int64_t> ticks = ParseStartTicks(stat);
  const int64_t ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (!ticks || ticks_per_second <= 0) return std::nullopt;
  // Ticks count from boot, sleep included; CLOCK_MONOTONIC leaves sleep out.
  const int64_t asleep = ReadClock(CLOCK_BOOTTIME) - ReadClock(CLOCK_MONOTONIC);
  const int64_t tick_ns = kNsPerSecond / ticks_per_second;
  ProcessStart start;
  start.earliest_ns = std::min(now, *ticks * tick_ns - asleep);
  start.latest_ns = std::max(start.earliest_ns, now - used);
  if (launched_ns && *launched_ns <= now &&
      *launched_ns >= start.earliest_ns - tick_ns) {
    start = {.earliest_ns = *launched_ns,
             .latest_ns = *launched_ns,
             .is_exact = true};
  }
  return start;
}

ResourceUsage ReadResourceUsage() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return {.max_resident_bytes = usage.ru_maxrss * 1024,
          .minor_faults = usage.ru_minflt,
          .major_faults = usage.ru_majflt,
          .user_ns = ToNs(usage.ru_utime),
          .system_ns = ToNs(usage.ru_stime)};
}

int64_t ReadResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size_pages = 0, resident_pages = 0;
  if (!(file >> size_pages >> resident_pages)) return 0;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace firstframe
