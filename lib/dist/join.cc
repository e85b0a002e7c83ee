#include "lib/dist/join.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/dist/mpi_collective.h"
#include "lib/dist/nccl_collective.h"
#include "lib/dist/tcp_control.h"

namespace firstframe {
namespace {

absl::StatusOr<std::unique_ptr<Collective>> JoinMpi(const Launch& launch,
                                                    absl::Duration timeout) {
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Collective> group, JoinMpiGroup(timeout));
  if (group->size() != launch.world_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Open MPI knows ", group->size(), " ranks, ", launch.launcher, " ",
        launch.world_size, ": start CPU ranks with mpirun or srun"));
  }
  return group;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> JoinGroup(
    const Launch& launch, const GroupOptions& options) {
  if (options.runtime == nullptr) {
    if (launch.world_size == 1) return MakeSoleCollective(MemoryKind::kHost);
    return JoinMpi(launch, options.timeout);
  }
  if (launch.world_size == 1) return MakeSoleCollective(MemoryKind::kDevice);
  FF_ASSIGN_OR_RETURN(std::unique_ptr<Collective> control,
                      launch.master_address.empty()
                          ? JoinMpi(launch, options.timeout)
                          : ConnectTcpControl(launch, options.timeout));
  NcclOptions nccl;
  nccl.runtime = options.runtime;
  nccl.device = options.device;
  nccl.stream = options.stream;
  nccl.timeout = options.timeout;
  nccl.search = options.search;
  return JoinNcclGroup(std::move(control), nccl);
}

}  // namespace firstframe
