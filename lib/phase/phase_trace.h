// A phase report as a Perfetto trace (https://ui.perfetto.dev).

#ifndef LIB_PHASE_PHASE_TRACE_H_
#define LIB_PHASE_PHASE_TRACE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

// Appends the trace to `*out`: a process for each pid among the lanes, named
// `process_name` for the first lane's and as its first lane else; a thread for
// each lane; a slice for each phase with its attributes, and its error. Offset
// 0 is the trace's time 0. Phases of a lane that overlap without nesting go to
// tracks of their own under the lane.
void WritePhaseTrace(const PhaseReport& report, absl::string_view process_name,
                     std::string* out);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_TRACE_H_
