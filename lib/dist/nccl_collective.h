// A group of GPUs over NCCL, one device a rank.

#ifndef LIB_DIST_NCCL_COLLECTIVE_H_
#define LIB_DIST_NCCL_COLLECTIVE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/cuda/runtime.h"
#include "lib/dist/collective.h"

namespace firstframe {

struct NcclOptions {
  cuda::Runtime* runtime = nullptr;
  int device = 0;
  // Operations are enqueued here, after what it already holds. Must outlive the
  // group.
  cuda::StreamHandle stream = nullptr;
  absl::Duration timeout = absl::Seconds(60);
  cuda::LibrarySearch search;
};

// Opens NCCL and joins the ranks of `control`, which carries the unique id,
// exchanges and news of failures (TCP, MPI, or one rank alone). All ranks must
// call it. Data is device memory; bytes, whatever their type.
//
// The communicator is non-blocking: connecting, operations and Wait() all end
// within the timeout, and at once when a rank fails, by ncclCommAbort. NCCL's
// own settings come from its environment variables; NVLink multicast is left as
// NCCL_NVLS_ENABLE says.
absl::StatusOr<std::unique_ptr<Collective>> JoinNcclGroup(
    std::unique_ptr<Collective> control, const NcclOptions& options);

}  // namespace firstframe

#endif  // LIB_DIST_NCCL_COLLECTIVE_H_
