// Runs a program in the foreground: its streams, terminal, signals and exit
// code are those of this process.

#ifndef LIB_OBSERVE_LAUNCH_H_
#define LIB_OBSERVE_LAUNCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace firstframe {

struct LaunchOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  // Set in the program's environment, over what this process has.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Times are CLOCK_MONOTONIC, in nanoseconds.
struct Launched {
  int64_t pid = 0;
  int64_t fork_ns = 0;
  int64_t exec_ns = 0;  // the kernel had replaced the program
  int64_t exit_ns = 0;  // the program was gone, its memory freed
  int exit_code = 0;    // 128 + signal when a signal ended it
  // Of the program and the children that it waited for.
  int64_t user_ns = 0;
  int64_t system_ns = 0;
  int64_t max_resident_bytes = 0;
  int64_t major_faults = 0;
  int64_t storage_read_bytes = 0;  // not from the page cache
};

// While the program runs, SIGINT and SIGQUIT from the terminal are left to it;
// those and SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 sent to this process are
// passed on. NotFound, PermissionDenied and the like, from errno, when it
// cannot be started. Not thread-safe: handlers belong to the process.
absl::StatusOr<Launched> Launch(const LaunchOptions& options);

}  // namespace firstframe

#endif  // LIB_OBSERVE_LAUNCH_H_
