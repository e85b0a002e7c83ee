// The same function on several threads.

#ifndef LIB_BASE_RUN_THREADS_H_
#define LIB_BASE_RUN_THREADS_H_

#include <thread>
#include <vector>

namespace firstframe {

// Calls `run(t)` for t from 0 to threads - 1, each on a thread of its own but
// for run(0), which the calling thread does; with fewer than two threads that
// is all. Returns when every call has. What the calls did is then visible to
// the caller. `run` must be callable by several threads at a time.
template <typename Run>
void RunOnThreads(int threads, const Run& run) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) {
    others.emplace_back([&run, t] { run(t); });
  }
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace firstframe

#endif  // LIB_BASE_RUN_THREADS_H_
