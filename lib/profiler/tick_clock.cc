#include "lib/profiler/tick_clock.h"

#include <fstream>
#include <string>

namespace firstframe {

bool TickClock::CounterIsReliable() {
#if defined(__aarch64__)
  return true;  // the architecture promises it
#else
  // The kernel watches the counter against other clocks and lists it only
  // while it agrees; being one of the choices is enough (a guest often prefers
  // its hypervisor's clock).
  std::ifstream file(
      "/sys/devices/system/clocksource/clocksource0/available_clocksource");
  for (std::string word; file >> word;) {
    if (word == "tsc") return true;
  }
  return false;
#endif
}

TickClock::TickClock(bool use_counter) : use_counter_(use_counter) {
  if (!use_counter_) return;
  ReadBoth(&first_tick_, &first_ns_);
  // A first estimate over 2 ms is right to parts in ten thousand.
  const timespec pause = {0, 2'000'000};
  ::nanosleep(&pause, nullptr);
  Calibrate();
}

// Takes the reading whose two ticks lie closest: nothing came between.
void TickClock::ReadBoth(int64_t* tick, int64_t* ns) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const int64_t before = ReadCounter();
    const int64_t now = MonotonicNs();
    const int64_t after = ReadCounter();
    if (after - before >= best) continue;
    best = after - before;
    *tick = before + (after - before) / 2;
    *ns = now;
  }
}

void TickClock::Calibrate() {
  if (!use_counter_) return;
  int64_t tick = 0, ns = 0;
  ReadBoth(&tick, &ns);
  if (tick <= first_tick_) return;
  const double rate = static_cast<double>(ns - first_ns_) /
                      static_cast<double>(tick - first_tick_);
  ns_per_tick_.store(rate, std::memory_order_relaxed);
}

}  // namespace firstframe
