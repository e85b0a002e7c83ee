// Time as int64 nanoseconds of a named clock, read through an interface so that
// tests decide what time it is.

#ifndef LIB_TIMING_CLOCK_H_
#define LIB_TIMING_CLOCK_H_

#include <time.h>

#include <cstdint>

namespace firstframe {

// A clock that never goes back. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since an epoch of the clock's own; differences are durations.
  virtual int64_t NowNs() const = 0;
};

// CLOCK_MONOTONIC: the host's uptime, stopped while it sleeps, steered in rate
// by NTP but never stepped. All processes of a host see the same value. Reading
// it takes about 20 ns.
class MonotonicClock final : public Clock {
 public:
  int64_t NowNs() const override {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

  // The instance to pass where nothing else is needed.
  static const MonotonicClock& Get() {
    static const MonotonicClock kClock;
    return kClock;
  }
};

}  // namespace firstframe

#endif  // LIB_TIMING_CLOCK_H_
