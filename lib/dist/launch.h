// Which rank this process is, from what its launcher left in the environment.

#ifndef LIB_DIST_LAUNCH_H_
#define LIB_DIST_LAUNCH_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

struct Launch {
  std::string launcher = "none";  // "torchrun", "openmpi", "slurm", "none"
  int rank = 0;                   // 0 <= rank < world_size
  int world_size = 1;
  int local_rank = 0;  // among the ranks of this machine: picks the GPU
  int local_size = 1;  // ranks of this machine; world_size when nothing says
  // Where rank 0 is to be met; empty when the launcher says nothing, which only
  // Open MPI's own transport can do without.
  std::string master_address;
  int master_port = 0;
  // The launcher itself listens on master_port (torchrun's store), so the
  // meeting point is one of the ports above it.
  bool master_port_is_taken = false;
};

// PyTorch's own default, used when an address is known and no port is.
inline constexpr int kDefaultMasterPort = 29500;

// Reads one variable; empty when it is unset.
using GetVariable =
    absl::FunctionRef<std::optional<std::string>(absl::string_view name)>;

// Reads torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
// MASTER_PORT), else Open MPI's (OMPI_COMM_WORLD_*), else Slurm's (inside a job
// step: SLURM_PROCID and others); MASTER_ADDR and MASTER_PORT hold for all.
// With none of them: one rank. InvalidArgument, naming the variable, for half a
// set or values that contradict each other.
absl::StatusOr<Launch> ReadLaunch(GetVariable get);

// Returns the first host of a Slurm node list: "gpu[007-9,12],x" gives
// "gpu007".
std::string FirstHostOfNodeList(absl::string_view list);

}  // namespace firstframe

#endif  // LIB_DIST_LAUNCH_H_
