// One run of a program, from the launcher's times and what its processes left,
// as phases.

#ifndef LIB_OBSERVE_STARTUP_TIMELINE_H_
#define LIB_OBSERVE_STARTUP_TIMELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/host/run_program.h"
#include "lib/observe/observed_process.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

struct StartupTimelineOptions {
  // Imports, loads and calls shorter than this get no phase of their own;
  // firsts (context, kernel, copies, region) always do.
  int64_t min_ns = 1'000'000;
};

// Returns the phases of the run, offset 0 at the fork. The program's main
// thread is lane 0, with phases that follow each other without a gap:
//
//   process.exec             fork to the kernel's replacing of the program
//   process.dynamic_loading  to main: libraries linked in, and their
//   constructors python.start             to the first line of site (only for
//   Python) program                  to the first step towards its end
//   process.exit             to its being gone
//
// so they add up to the wall time. Imports ("import torch"), dlopen ("load X"),
// CUDA calls ("cuda.*"), checkpoint files ("open X") and NVTX ranges nest in
// them by time. Other threads and processes with such events have lanes of
// their own.
PhaseReport BuildStartupTimeline(const ProgramExit& launched,
                                 absl::Span<const ObservedProcess> processes,
                                 const StartupTimelineOptions& options = {});

// Returns "python train.py": the program and what it runs, without folders.
std::string ShortCommand(absl::Span<const std::string> command);

}  // namespace firstframe

#endif  // LIB_OBSERVE_STARTUP_TIMELINE_H_
