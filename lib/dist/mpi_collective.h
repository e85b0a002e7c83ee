// A group of processes over Open MPI, for host memory: CPU ranks, and any
// cluster without GPUs.

#ifndef LIB_DIST_MPI_COLLECTIVE_H_
#define LIB_DIST_MPI_COLLECTIVE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/dist/collective.h"

namespace firstframe {

// Opens Open MPI, initialises it if nobody has, and joins all ranks that mpirun
// (or srun) started. Every later wait ends after `timeout`. Non-blocking
// operations with polling are used throughout, so that a rank that fails ends
// the others' waits with its reason.
//
// Unavailable when there is no Open MPI. The destructor finalises MPI if this
// initialised it, but not after a failure: finalising waits for ranks that may
// be gone, so the process then just ends, and mpirun notices.
//
// One group per process; the calling thread must be the one that uses it.
absl::StatusOr<std::unique_ptr<Collective>> JoinMpiGroup(
    absl::Duration timeout);

}  // namespace firstframe

#endif  // LIB_DIST_MPI_COLLECTIVE_H_
