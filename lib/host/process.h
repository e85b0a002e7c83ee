// This process as the kernel sees it: when it began, what it has used.

#ifndef LIB_HOST_PROCESS_H_
#define LIB_HOST_PROCESS_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace firstframe {

// When this process began, as CLOCK_MONOTONIC nanoseconds between two bounds.
//
// The kernel keeps a process's start in ticks (10 ms on most), too coarse to
// time an exec of 3 ms. The processor time used so far bounds it from the other
// side: a process cannot be younger than that. The best estimate is `latest`:
// with its files in the page cache a starting process does little but run.
struct ProcessStart {
  int64_t earliest_ns = 0;  // the tick's beginning
  int64_t latest_ns = 0;    // now less the processor time used
  bool is_exact = false;    // a launcher said when it called exec

  int64_t best_ns() const { return latest_ns; }
  int64_t resolution_ns() const { return latest_ns - earliest_ns; }
};

// Call as early in main as can be: both bounds loosen with time, and the second
// is void once other threads run. `launched_ns` is the launcher's
// CLOCK_MONOTONIC just before exec, when there is one; a value in the future or
// before the kernel's tick is ignored. Nothing when /proc cannot be read.
std::optional<ProcessStart> ReadProcessStart(
    std::optional<int64_t> launched_ns = std::nullopt);

// Parses field 22 (start time, in ticks since boot) of /proc/<pid>/stat; the
// second field is a name that may hold spaces and parentheses.
std::optional<int64_t> ParseStartTicks(absl::string_view stat);

struct ResourceUsage {
  int64_t max_resident_bytes = 0;
  int64_t minor_faults = 0;
  int64_t major_faults = 0;  // waited for a disk
  int64_t user_ns = 0;
  int64_t system_ns = 0;
};

// Returns what this process, with all its threads, has used.
ResourceUsage ReadResourceUsage();

// Returns the memory of this process that is resident now; 0 when /proc cannot
// be read.
int64_t ReadResidentBytes();

}  // namespace firstframe

#endif  // LIB_HOST_PROCESS_H_
