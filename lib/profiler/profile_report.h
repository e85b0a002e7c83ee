// What profile_run tells at the end.

#ifndef LIB_PROFILER_PROFILE_REPORT_H_
#define LIB_PROFILER_PROFILE_REPORT_H_

#include <ostream>
#include <vector>

#include "lib/host/run_program.h"
#include "lib/profiler/trace_finalize.h"

namespace firstframe {

// Regions with their device time, what was kept, left out and dropped, what
// recording cost, every file, every warning, and the command to go on with.
void WriteProfileReport(const std::vector<FinalizedProfile>& profiles,
                        const ProgramExit& exit, int top, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_PROFILER_PROFILE_REPORT_H_
