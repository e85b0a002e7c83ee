// Where memory and threads are on a machine with several memory nodes: a ring
// on the far side of the interconnect halves the rate at which a device reads
// it. On a machine with one node nothing here does anything.

#ifndef LIB_LOAD_NUMA_H_
#define LIB_LOAD_NUMA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

inline constexpr char kNodeFolder[] = "/sys/devices/system/node";

// A node with the CPUs beside it; empty `cpus`: nothing to bind to.
struct NumaPlace {
  int node = -1;
  std::vector<int> cpus;
  bool is_bound() const { return !cpus.empty(); }
};

// Parses the kernel's list form, "0-3,8,10-11". InvalidArgument when it is none
// or names more than 4096 CPUs.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// Whether `folder` (sysfs, or a test's stand-in) lists more than one node.
bool HasSeveralNodes(const std::string& folder = kNodeFolder);

// The place of node `node`, from `folder`. An unbound place when the node is
// unknown (negative, absent), has no CPUs, or is the only one.
NumaPlace FindNumaPlace(int node, const std::string& folder = kNodeFolder);

// Asks for the pages of [data, data + size), which must not be touched yet, on
// `node`: preferred, so that a full node costs speed and not the load. `data`
// is page-aligned. Unavailable where the system refuses (mbind(2)).
absl::Status PreferNode(void* data, size_t size, int node);

// Moves the calling thread to those of `cpus` that it may use; leaves it where
// it is when there are none, or when `cpus` is empty.
void RunThreadOn(const std::vector<int>& cpus);

}  // namespace firstframe

#endif  // LIB_LOAD_NUMA_H_
