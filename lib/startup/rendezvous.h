// Where the ranks of a job meet.

#ifndef LIB_STARTUP_RENDEZVOUS_H_
#define LIB_STARTUP_RENDEZVOUS_H_

#include "absl/status/statusor.h"
#include "lib/dist/launch.h"
#include "lib/startup/startup_report.h"

namespace firstframe {

// Keeps what a launcher set (address, port, rank), and for a process on its own
// picks 127.0.0.1 and a port that is free now. Another process may take the
// port before it is used. Unavailable when no port can be had.
absl::StatusOr<RendezvousFacts> ChooseRendezvous(const Launch& launch);

}  // namespace firstframe

#endif  // LIB_STARTUP_RENDEZVOUS_H_
