// Ranks as threads of one process: the fake transport of the tests, and a way
// to try rank counts that no launcher started.

#ifndef LIB_DIST_LOCAL_COLLECTIVE_H_
#define LIB_DIST_LOCAL_COLLECTIVE_H_

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "lib/dist/collective.h"

namespace firstframe {

// Returns one Collective per rank, over host memory. Each is for one thread; an
// object that is destroyed before the group's work is done counts as failed.
// A wait longer than `timeout` is DeadlineExceeded.
std::vector<std::unique_ptr<Collective>> MakeLocalGroup(int size,
                                                        absl::Duration timeout);

}  // namespace firstframe

#endif  // LIB_DIST_LOCAL_COLLECTIVE_H_
