// How much host memory may be added and pinned here, before asking for it.
//
// A container's limit is the cgroup's, not the machine's: the budget is the
// least, over the cgroup and its ancestors, of limit - (charge - clean file
// cache), and what the machine itself has free, and RLIMIT_MEMLOCK.

#ifndef LIB_LOAD_MEMORY_BUDGET_H_
#define LIB_LOAD_MEMORY_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe {

struct MemoryBudget {
  // Each is empty where no limit is set or nothing could be read.
  std::optional<uint64_t> cgroup_limit_bytes;
  std::optional<uint64_t> cgroup_headroom_bytes;    // limit - (charge - cache)
  std::optional<uint64_t> machine_available_bytes;  // MemAvailable
  // CUDA pins through the driver, which charges no RLIMIT_MEMLOCK where the
  // process may lock memory (CAP_IPC_LOCK); empty means unlimited.
  std::optional<uint64_t> memlock_limit_bytes;
  std::string cgroup;  // the folder whose limit is the binding one; "" = none

  // The least of all that are known; the largest uint64 when none is.
  uint64_t PinnableBytes() const;
  // What that comes from, for a message: "RLIMIT_MEMLOCK", "the machine's
  // available memory", "the cgroup's limit"; "" when none is known.
  absl::string_view PinnableBound() const;

  // ResourceExhausted when the cgroup has less than `size_bytes` left: touching
  // more would end the process. `what` they are for ends the message. Says
  // nothing of the machine's own memory, which virtual machines add when it is
  // touched.
  absl::Status CheckRoom(uint64_t size_bytes, absl::string_view what) const;
};

// Reads the budget of this process. `root` is prepended to /proc and
// /sys/fs/cgroup (tests). Knows cgroup v2, v1's memory controller, and both at
// once. Never fails: what cannot be read is empty.
MemoryBudget ReadMemoryBudget(const std::string& root = "");

}  // namespace firstframe

#endif  // LIB_LOAD_MEMORY_BUDGET_H_
