// Time stamps at the cost of a register read.
//
// A tick is a count of the processor's own invariant counter (TSC, CNTVCT);
// ToNs() turns ticks into nanoseconds of CLOCK_MONOTONIC by two readings of
// both clocks, the second as late as possible. Where the counter is not
// invariant (the kernel did not choose it as its clock source), a tick is a
// nanosecond of CLOCK_MONOTONIC and the conversion does nothing.

#ifndef LIB_PROFILER_TICK_CLOCK_H_
#define LIB_PROFILER_TICK_CLOCK_H_

#include <time.h>

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace firstframe {

// Thread-safe.
class TickClock {
 public:
  // Reads both clocks for the first time. `use_counter`: see CounterIsReliable.
  explicit TickClock(bool use_counter);

  // Whether the kernel itself keeps time by the counter.
  static bool CounterIsReliable();

  int64_t Now() const { return use_counter_ ? ReadCounter() : MonotonicNs(); }

  // Converts a tick of any time. Calibrate() improves it.
  int64_t ToNs(int64_t tick) const {
    if (!use_counter_) return tick;
    const double ns_per_tick = ns_per_tick_.load(std::memory_order_relaxed);
    return first_ns_ +
           static_cast<int64_t>(static_cast<double>(tick - first_tick_) *
                                ns_per_tick);
  }

  // Reads both clocks again. The conversion changes by parts in a million at
  // most once 100 ms have passed; call it from one thread.
  void Calibrate();

  static int64_t MonotonicNs() {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }

 private:
  static int64_t ReadCounter() {
#if defined(__x86_64__)
    return static_cast<int64_t>(__rdtsc());
#elif defined(__aarch64__)
    int64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return MonotonicNs();
#endif
  }
  static void ReadBoth(int64_t* tick, int64_t* ns);

  const bool use_counter_;
  int64_t first_tick_ = 0;
  int64_t first_ns_ = 0;
  std::atomic<double> ns_per_tick_ = 1;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_TICK_CLOCK_H_
