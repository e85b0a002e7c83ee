// Runs one program to its end, as a shell would: same streams, same terminal,
// signals passed on, its exit status handed back.

#ifndef LIB_HOST_RUN_PROGRAM_H_
#define LIB_HOST_RUN_PROGRAM_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace firstframe {

struct ProgramOptions {
  std::vector<std::string> arguments;  // the program first, searched on PATH
  // Variables set (or, with an empty value in `unset`, removed) in the child.
  std::vector<std::pair<std::string, std::string>> set = {};
  std::vector<std::string> unset = {};
};

struct ProgramExit {
  pid_t pid = 0;
  int code = 0;    // of a normal exit
  int signal = 0;  // that ended it, or 0
  // CLOCK_MONOTONIC: of the fork, when the kernel had replaced the program (as
  // this process learnt of it), when the child was gone and its memory freed.
  int64_t fork_ns = 0;
  int64_t exec_ns = 0;
  int64_t exit_ns = 0;
  int64_t wall_ns = 0;  // fork to exit
  // Of the program and the children that it waited for.
  int64_t user_ns = 0;
  int64_t system_ns = 0;
  int64_t max_resident_bytes = 0;  // of the largest process
  int64_t major_faults = 0;
  int64_t storage_read_bytes = 0;  // what the page cache did not have

  // What a shell reports: the code, or 128 and the signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : code; }
};

// Starts the program and waits for its end. While it runs, SIGTERM, SIGHUP,
// SIGQUIT, SIGUSR1, SIGUSR2 and SIGINT sent to this process go to the child
// (what the terminal sends, the child has got already). NotFound when there is
// no such program, PermissionDenied when it may not be run. Blocks and restores
// signals of the calling thread: call it from a process's only thread.
absl::StatusOr<ProgramExit> RunProgram(const ProgramOptions& options);

}  // namespace firstframe

#endif  // LIB_HOST_RUN_PROGRAM_H_
