#include "lib/wan_vae/parallel.h"

#include <algorithm>

#include "lib/host/cpu_budget.h"

// Debian's oneDNN runs on libgomp. Entering the same team through libgomp's
// ABI, which GCC's own #pragma omp compiles to, keeps one set of threads
// whatever compiler builds this file (clang would bring a second OpenMP
// runtime).
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned num_threads,
                   unsigned flags);
void omp_set_num_threads(int count);
int omp_get_max_threads();
int omp_get_thread_num();
int omp_get_num_threads();
}

namespace firstframe {
namespace {

// Whether this thread's number was set; OpenMP's own is by thread, too.
thread_local bool is_set = false;

struct Loop {
  int64_t count;
  absl::FunctionRef<void(int64_t, int64_t)> body;
};

void RunShare(void* data) {
  const Loop& loop = *static_cast<const Loop*>(data);
  const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
  const int64_t begin = loop.count * thread / threads;
  const int64_t end = loop.count * (thread + 1) / threads;
  if (begin < end) loop.body(begin, end);
}

}  // namespace

void SetComputeThreads(int count) {
  static const int most = std::min(omp_get_max_threads(), CpuBudget());
  omp_set_num_threads(count > 0 ? count : most);
  is_set = true;
}

int ComputeThreads() {
  if (!is_set) SetComputeThreads(0);
  return omp_get_max_threads();
}

ThreadLimit::ThreadLimit(int64_t most) : before_(ComputeThreads()) {
  if (most < before_) omp_set_num_threads(static_cast<int>(most));
}

ThreadLimit::~ThreadLimit() { omp_set_num_threads(before_); }

void ParallelFor(int64_t count, int64_t grain,
                 absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t shares =
      std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const int64_t threads = std::min<int64_t>(shares, ComputeThreads());
  if (threads <= 1) {
    if (count > 0) body(0, count);
    return;
  }
  Loop loop = {count, body};
  GOMP_parallel(&RunShare, &loop, static_cast<unsigned>(threads), 0);
}

}  // namespace firstframe
