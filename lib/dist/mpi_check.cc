// A rank of mpi_collective_test.sh: puts the MPI transport through its paces.
//
// usage: mpi_check all | fail RANK | stuck RANK

#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/time/clock.h"
#include "lib/dist/collective_test_util.h"
#include "lib/dist/mpi_collective.h"

namespace firstframe {
namespace {

absl::Status Run(const std::string& what, int who, Collective& group) {
  if (what == "all") return testing::ExerciseGroup(group);
  FF_RETURN_IF_ERROR(Barrier(group));
  if (what == "fail" && group.rank() == who) {
    const absl::Status status = absl::DataLossError("bad shard");
    group.Fail(status);
    // Lives on, so that the others' errors come from the news alone.
    absl::SleepFor(absl::Seconds(2));
    return status;
  }
  if (what == "stuck" && group.rank() == who) absl::SleepFor(absl::Seconds(4));
  std::string data(1 << 20, 'x');
  FF_RETURN_IF_ERROR(group.Broadcast(data.data(), data.size(), who));
  return group.Wait();
}

}  // namespace
}  // namespace firstframe

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "all";
  const int who = argc > 2 ? std::atoi(argv[2]) : 0;
  auto group = firstframe::JoinMpiGroup(what == "stuck" ? absl::Seconds(1)
                                                        : absl::Seconds(60));
  if (!group.ok()) {
    std::cerr << group.status() << "\n";
    return 3;
  }
  const int rank = (*group)->rank();
  const absl::Status status = firstframe::Run(what, who, **group);
  std::cout << "rank " + std::to_string(rank) + " of " +
                   std::to_string((*group)->size()) + ": " + status.ToString() +
                   "\n"
            << std::flush;
  group->reset();
  return status.ok() ? 0 : 1;
}
