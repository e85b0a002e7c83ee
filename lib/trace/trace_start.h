// When a trace's first span starts.

#ifndef LIB_TRACE_TRACE_START_H_
#define LIB_TRACE_TRACE_START_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {

// Reads `reader` to its end and returns the least time of its complete events,
// relative to the trace's base; 0 when it has none. Events at time 0 and of no
// length were never timed and do not count.
absl::StatusOr<int64_t> FindTraceStart(TraceReader& reader);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_START_H_
