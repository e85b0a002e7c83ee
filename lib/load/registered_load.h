// Copies straight out of the page cache: the file mapping is pinned where it is
// and the copy engines read it, no thread touches a byte.
//
// Pinning costs about 40 ms a GB here and unpinning half of that, so this only
// pays where the mapping stays pinned over many loads, or where there are few
// CPU cores. It is a named mode, never chosen by itself.

#ifndef LIB_LOAD_REGISTERED_LOAD_H_
#define LIB_LOAD_REGISTERED_LOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/load/plan.h"
#include "lib/load/sources.h"

namespace firstframe {

struct RegisteredReport {
  int64_t pin_ns = 0;    // mapping, faulting in and registering
  int64_t copy_ns = 0;   // copies, until the device is idle
  int64_t unpin_ns = 0;  // after the load
};

// Fills the device arena on `stream`. The files must be in the page cache (they
// are read into it when not). Unavailable for files on network file systems and
// where the platform cannot pin a file mapping; ResourceExhausted when the
// files exceed `pin_budget_bytes`.
absl::StatusOr<RegisteredReport> LoadRegistered(const LoadPlan& plan,
                                                const OpenedSources& sources,
                                                std::byte* arena,
                                                const cuda::Stream& stream,
                                                uint64_t pin_budget_bytes);

}  // namespace firstframe

#endif  // LIB_LOAD_REGISTERED_LOAD_H_
