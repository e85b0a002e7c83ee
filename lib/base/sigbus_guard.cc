#include "lib/base/sigbus_guard.h"

#include <setjmp.h>
#include <signal.h>

#include <cstdint>
#include <cstring>

namespace firstframe {
namespace {

// What this thread is copying. Volatile: the handler runs between any two
// instructions.
struct Copy {
  sigjmp_buf escape;
  uintptr_t begin;
  uintptr_t end;
};
thread_local Copy* volatile current_copy = nullptr;

struct sigaction previous_action;

void OnSigbus(int signal, siginfo_t* info, void* context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  Copy* const copy = current_copy;
  if (copy != nullptr && address >= copy->begin && address < copy->end) {
    ::siglongjmp(copy->escape, 1);
  }
  if (previous_action.sa_flags & SA_SIGINFO) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL &&
             previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    // Back to the default action; the instruction faults again on return.
    ::signal(SIGBUS, SIG_DFL);
  }
}

bool InstallHandler() {
  struct sigaction action = {};
  action.sa_sigaction = OnSigbus;
  // Not deferred: the jump out of the handler leaves the signal mask alone.
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &previous_action) == 0;
}

}  // namespace

bool CopyFromMapping(void* target, const void* source, size_t size) {
  static const bool is_installed = InstallHandler();
  if (!is_installed) return false;
  Copy copy;
  copy.begin = reinterpret_cast<uintptr_t>(source);
  copy.end = copy.begin + size;
  if (sigsetjmp(copy.escape, 0) != 0) {
    current_copy = nullptr;
    return false;
  }
  current_copy = &copy;
  std::memcpy(target, source, size);
  // Keeps the copy before the line that ends the guard.
  asm volatile("" ::: "memory");
  current_copy = nullptr;
  return true;
}

}  // namespace firstframe
