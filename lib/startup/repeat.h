// A startup measured in processes of its own: several runs, or one that must
// begin with the page cache in a known state.

#ifndef LIB_STARTUP_REPEAT_H_
#define LIB_STARTUP_REPEAT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/phase/phase_document.h"

namespace firstframe {

// The variable in which a run finds when it was launched (CLOCK_MONOTONIC
// nanoseconds), which makes its process.exec exact.
inline constexpr char kLaunchTimeVariable[] = "FIRSTFRAME_LAUNCH_NS";

struct RepeatOptions {
  std::vector<std::string> argv;  // the run: writes a phase document
  int runs = 1;
  // Called before each run, outside of its time: brings the cache to its state.
  std::function<absl::Status()> prepare;
  std::function<bool()> is_cancelled;
  // Called after each run with how many are done.
  std::function<void(int)> progress;
};

struct RepeatResult {
  // The first run's tool, build and context; every run's sample and facts, each
  // fact object with "launched_wall_ns" in front: from exec to exit, by this
  // process's clock.
  PhaseDocument document;
  std::vector<int64_t> launched_wall_ns;
  std::vector<int> exit_codes;
};

// Runs `options.argv` one after the other. A run that fails but still wrote its
// document is part of the result; one that wrote none is an error, as are
// `prepare`'s. Stops early, with what there is, when cancelled.
absl::StatusOr<RepeatResult> RepeatStartup(const RepeatOptions& options);

}  // namespace firstframe

#endif  // LIB_STARTUP_REPEAT_H_
