#include "lib/cli/interrupt.h"

#include <signal.h>

#include <atomic>

namespace firstframe::cli {
namespace {

std::atomic<int> g_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) { g_signal = signal; };
  // SA_RESETHAND: the default action is back for the second signal.
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int InterruptSignal() { return g_signal; }

}  // namespace firstframe::cli
