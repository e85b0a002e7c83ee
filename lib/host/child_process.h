// Runs a program and times it from exec to exit.

#ifndef LIB_HOST_CHILD_PROCESS_H_
#define LIB_HOST_CHILD_PROCESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace firstframe {

struct ChildOptions {
  std::vector<std::string> argv;  // argv[0] is a path; PATH is not searched
  // Set in the child's environment, over what this process has.
  std::vector<std::pair<std::string, std::string>> environment;
  // Gets the child CLOCK_MONOTONIC just before exec, in nanoseconds, under this
  // name. Empty: it gets none.
  std::string launch_time_variable;
  // Asked a few times a second while the child runs; true sends it SIGINT once.
  std::function<bool()> is_cancelled;
};

struct ChildResult {
  int exit_code = 0;  // 128 + signal when a signal ended it
  int64_t wall_ns = 0;
  std::string standard_output;
};

// Runs the program to its end with its standard output captured; standard input
// and error are this process's. Codes from errno when it cannot be started.
absl::StatusOr<ChildResult> RunChild(const ChildOptions& options);

}  // namespace firstframe

#endif  // LIB_HOST_CHILD_PROCESS_H_
