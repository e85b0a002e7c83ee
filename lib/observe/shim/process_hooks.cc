// When main begins and when the program starts to end.

#include <stdlib.h>
#include <unistd.h>

#include "lib/observe/shim/record.h"

namespace firstframe::shim {
namespace {

using Main = int (*)(int, char**, char**);
using StartMain = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(),
                          void*);

Main program_main = nullptr;

void NoteExit() {
  EventHeader* const header = Header();
  // A child between vfork and exec writes to its parent's memory.
  if (header == nullptr || ::getpid() != static_cast<pid_t>(header->pid))
    return;
  int64_t none = 0;
  header->exit_ns.compare_exchange_strong(none, NowNs());
}

int TimedMain(int argc, char** argv, char** environment) {
  if (EventHeader* const header = Header(); header != nullptr) {
    header->main_ns = NowNs();
    LogNewLibraries();
  }
  const int code = program_main(argc, argv, environment);
  NoteExit();
  return code;
}

}  // namespace
}  // namespace firstframe::shim

extern "C" {

__attribute__((visibility("default"))) int __libc_start_main(
    firstframe::shim::Main main, int argc, char** argv, void (*init)(),
    void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using namespace firstframe::shim;
  const auto next =
      reinterpret_cast<StartMain>(NextSymbol("__libc_start_main"));
  program_main = main;
  return next(TimedMain, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((visibility("default"), noreturn)) void exit(int code) {
  using namespace firstframe::shim;
  NoteExit();
  reinterpret_cast<void (*)(int)>(NextSymbol("exit"))(code);
  __builtin_unreachable();
}

__attribute__((visibility("default"), noreturn)) void _exit(int code) {
  using namespace firstframe::shim;
  NoteExit();
  reinterpret_cast<void (*)(int)>(NextSymbol("_exit"))(code);
  __builtin_unreachable();
}

}  // extern "C"
