// A clock that a test sets.

#ifndef LIB_TESTING_FAKE_CLOCK_H_
#define LIB_TESTING_FAKE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "lib/timing/clock.h"

namespace firstframe::testing {

// Stands still until moved. Thread-safe.
class FakeClock : public Clock {
 public:
  explicit FakeClock(int64_t now_ns = 0) : now_ns_(now_ns) {}

  int64_t NowNs() const override { return now_ns_.fetch_add(step_ns_); }

  void Advance(int64_t duration_ns) { now_ns_ += duration_ns; }

  // From now on each reading moves the clock by `step_ns` after it was taken.
  void SetStep(int64_t step_ns) { step_ns_ = step_ns; }

 private:
  mutable std::atomic<int64_t> now_ns_;
  std::atomic<int64_t> step_ns_{0};
};

}  // namespace firstframe::testing

#endif  // LIB_TESTING_FAKE_CLOCK_H_
