// The control half of a group over TCP: rendezvous at rank 0, small exchanges,
// and news of failures. Moves no tensor bytes: NCCL does, and gets its unique
// id through here.
//
// A star: every rank holds one connection to rank 0, which relays. A connection
// that closes is a rank that left, and that is news too.

#ifndef LIB_DIST_TCP_CONTROL_H_
#define LIB_DIST_TCP_CONTROL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "lib/dist/collective.h"
#include "lib/dist/launch.h"

namespace firstframe {

// Meets all ranks of `launch` within `timeout`, which also bounds every later
// wait. Rank 0 listens on launch.master_port, or, where another server has it,
// on one of the next few; the others try those in turn until one answers as a
// rank 0 of the same world size. Broadcast and AllGather answer Unimplemented.
//
// InvalidArgument when `launch` names no address; DeadlineExceeded, saying how
// many ranks came, when not all meet in time.
absl::StatusOr<std::unique_ptr<Collective>> ConnectTcpControl(
    const Launch& launch, absl::Duration timeout);

}  // namespace firstframe

#endif  // LIB_DIST_TCP_CONTROL_H_
