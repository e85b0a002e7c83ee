// Joins the ranks of a launch over the transport that fits them.

#ifndef LIB_DIST_JOIN_H_
#define LIB_DIST_JOIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/dist/collective.h"
#include "lib/dist/launch.h"

namespace firstframe {

struct GroupOptions {
  // Null: tensors are in host memory.
  cuda::Runtime* runtime = nullptr;
  int device = 0;
  cuda::StreamHandle stream = nullptr;
  absl::Duration timeout = absl::Seconds(60);
  cuda::LibrarySearch search;  // for NCCL
};

// One rank alone needs no transport. GPUs talk over NCCL, which meets over TCP
// when there is an address and over MPI otherwise; host memory goes over Open
// MPI. Unavailable, naming what is missing, when that is not here:
// InvalidArgument when several CPU ranks were not started by mpirun or srun.
absl::StatusOr<std::unique_ptr<Collective>> JoinGroup(
    const Launch& launch, const GroupOptions& options);

}  // namespace firstframe

#endif  // LIB_DIST_JOIN_H_
