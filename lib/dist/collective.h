// What a group of ranks does together, whatever carries the bytes.
//
// One interface, several transports: NCCL between GPUs (nccl_collective.h),
// Open MPI between processes of CPU ranks (mpi_collective.h), threads of one
// process (local_collective.h, also the fake of the tests), and one rank alone.
//
// Rules that keep a group from hanging:
//  - Every rank makes the same calls in the same order.
//  - Every wait has a deadline, DeadlineExceeded after it.
//  - A rank that cannot go on calls Fail(); the others' next or current wait
//    then ends in Aborted, naming the rank and its reason. A rank that vanishes
//    (its process died) counts as failed.
//  - After an error the group is of no more use; every later call returns it.

#ifndef LIB_DIST_COLLECTIVE_H_
#define LIB_DIST_COLLECTIVE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class MemoryKind { kHost, kDevice };

// Thread-compatible: one thread at a time per object.
class Collective {
 public:
  virtual ~Collective() = default;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "nccl", "mpi", "local", "tcp" (control only), "none" (one rank).
  virtual absl::string_view transport() const = 0;
  // Where the buffers of Broadcast and AllGather must be.
  virtual MemoryKind memory() const = 0;

  // Data. Both only start: buffers must stay as they are until Wait() returns.
  // A device transport orders the operation after all that its stream holds.

  // Copies `size_bytes` at `data` of rank `root` to `data` of all others.
  virtual absl::Status Broadcast(void* data, size_t size_bytes, int root) = 0;

  // Fills data[r * bytes_per_rank, (r + 1) * bytes_per_rank) of every rank with
  // rank r's, for all r. In place: each rank's own part is there already.
  virtual absl::Status AllGather(void* data, size_t bytes_per_rank) = 0;

  // Waits until every started operation is complete here.
  virtual absl::Status Wait() = 0;

  // Control.

  // Gives every rank everyone's `mine`, by rank. Small data (kilobytes). Also a
  // barrier: returns only after all ranks have called.
  virtual absl::StatusOr<std::vector<std::string>> Exchange(
      absl::string_view mine) = 0;

  // Tells all others that this rank gives up, and why. Best effort; never waits
  // long.
  virtual void Fail(const absl::Status& status) = 0;

  // Returns an error as soon as it is known here that some rank failed. Cheap;
  // call it in long loops of one's own.
  virtual absl::Status Check() = 0;

 protected:
  Collective(int rank, int size) : rank_(rank), size_(size) {}

 private:
  const int rank_;
  const int size_;
};

// Returns once all ranks have called.
inline absl::Status Barrier(Collective& group) {
  return group.Exchange("").status();
}

// Agrees on an outcome: OK when `mine` is OK on all ranks, else the first
// failing rank's error, with its rank in front. All ranks get the same answer,
// so that all take the same turn.
absl::Status Agree(Collective& group, const absl::Status& mine);

// The group of one rank: everything is done at once. `memory` is what memory()
// answers; no data is ever moved.
std::unique_ptr<Collective> MakeSoleCollective(MemoryKind memory);

}  // namespace firstframe

#endif  // LIB_DIST_COLLECTIVE_H_
