#include "lib/trace/trace_start.h"

#include <algorithm>
#include <optional>

#include "lib/base/status_macros.h"

namespace firstframe {

absl::StatusOr<int64_t> FindTraceStart(TraceReader& reader) {
  std::optional<int64_t> first;
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader.Next(&event));
    if (!more) return first.value_or(0);
    if (event.phase != 'X' || !event.has_time) continue;
    if (event.time_ns == 0 && event.duration_ns == 0) continue;
    first = std::min(first.value_or(event.time_ns), event.time_ns);
  }
}

}  // namespace firstframe
