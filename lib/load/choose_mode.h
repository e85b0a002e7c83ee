// Which of our ways to load is the fastest on this machine, by what it was
// measured to be able to do.

#ifndef LIB_LOAD_CHOOSE_MODE_H_
#define LIB_LOAD_CHOOSE_MODE_H_

#include <string>

#include "lib/load/load_mode.h"
#include "lib/load/roofline.h"

namespace firstframe {

struct ModeChoice {
  LoadMode mode = LoadMode::kIndependent;
  // The chosen one first: "shard_allgather 110.0 GB/s by pinned_h2d, all ranks;
  // independent 55.0 GB/s by pinned_h2d; broadcast_bucketed 55.0 GB/s by ..."
  std::string why;
};

// Chooses among `host` (one rank, host memory), or else `independent`,
// `broadcast_bucketed` and `shard_allgather`: the one whose binding limit
// (LimitFor) is highest. A mode that moves data between ranks must promise 5 %
// more than one that does less of it. Pure; the same on every rank that is
// given the same figures.
ModeChoice ChooseLoadMode(const Roofline& roofline, int ranks, bool to_device,
                          double cached_fraction);

}  // namespace firstframe

#endif  // LIB_LOAD_CHOOSE_MODE_H_
