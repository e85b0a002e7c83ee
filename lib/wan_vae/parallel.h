// Loops over all cores, on the threads that oneDNN computes with.

#ifndef LIB_WAN_VAE_PARALLEL_H_
#define LIB_WAN_VAE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace firstframe {

// Sets how many threads this thread's later loops and oneDNN calls use; 0 is
// all that the process may run on (its affinity mask, or OMP_NUM_THREADS), but
// no more than its control group grants CPUs (lib/host/cpu_budget.h).
void SetComputeThreads(int count);

// Returns that number.
int ComputeThreads();

// While it lives, this thread's loops and oneDNN calls use at most `most`
// threads.
class ThreadLimit {
 public:
  explicit ThreadLimit(int64_t most);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  const int before_;
};

// Calls `body(begin, end)` for disjoint ranges that cover [0, count), each at
// least `grain` long but the last, from as many threads as are set. Returns
// when all are done. `body` must not throw.
void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t, int64_t)> body);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_PARALLEL_H_
