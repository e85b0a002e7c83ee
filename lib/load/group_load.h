// Loads one checkpoint on all ranks of a group. Every rank ends with the same
// arena; every rank must call the same function with the same options.
//
// An error on any rank is an error on all: a rank that fails says so, the
// others leave their waits with its reason, and nothing hangs.

#ifndef LIB_LOAD_GROUP_LOAD_H_
#define LIB_LOAD_GROUP_LOAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/cuda/stream.h"
#include "lib/dist/collective.h"
#include "lib/load/loader.h"

namespace firstframe {

struct GroupLoadOptions {
  // Bytes of one broadcast, or of one gather over all ranks.
  uint64_t bucket_bytes = 64 << 20;
  // The stream that the group's operations run on; null in host memory.
  const cuda::Stream* stream = nullptr;
};

struct GroupLoadReport {
  LoadReport load;            // this rank's own share
  int64_t collective_ns = 0;  // in the group's calls and waits, host time
  uint64_t collective_bytes = 0;
};

// How long an arena must be for every function here: the plan's, and a tail so
// that all shares are equal.
uint64_t GroupArenaBytes(const LoadPlan& plan, int ranks);

// Every rank loads everything.
absl::StatusOr<GroupLoadReport> LoadIndependent(
    CheckpointLoader& loader, std::byte* arena, Collective& group,
    const GroupLoadOptions& options);

// Rank 0 loads; each bucket is broadcast as soon as its copies are enqueued, so
// that links between GPUs work while the next bucket comes up.
absl::StatusOr<GroupLoadReport> LoadAndBroadcast(
    CheckpointLoader& loader, std::byte* arena, Collective& group,
    const GroupLoadOptions& options);

// Rank r loads the r-th part of each bucket; each bucket is gathered in place.
absl::StatusOr<GroupLoadReport> LoadAndGather(CheckpointLoader& loader,
                                              std::byte* arena,
                                              Collective& group,
                                              const GroupLoadOptions& options);

}  // namespace firstframe

#endif  // LIB_LOAD_GROUP_LOAD_H_
