// Feeds the records of JSONL inputs into a report.

#ifndef LIB_METRICS_PERF_INPUT_H_
#define LIB_METRICS_PERF_INPUT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/jsonl_reader.h"
#include "lib/metrics/perf_record_reader.h"
#include "lib/metrics/perf_report.h"
#include "lib/metrics/perf_report_text.h"

namespace firstframe {

// Called with each record as it is read; may be null.
struct PerfObserver {
  std::function<void(const RequestRecord&)> on_request;
  std::function<void(const TrainWindowRecord&)> on_window;
  // "perf.jsonl:7: byte 12: expected a number": a line that was left out.
  std::function<void(const std::string&)> on_problem;
};

// Reads what `reader` has now, adds it to `report` and counts it in `inputs`.
// Lines that do not parse are reported, counted and left out. With `is_last`,
// also what stands behind the last line end: a whole record without its line
// end counts, half a one is torn. Errors are those of reading.
absl::Status ReadPerfRecords(JsonlReader& reader, bool is_last,
                             const PerfObserver& observer, PerfReport& report,
                             PerfInputs& inputs);

// Returns the files that `pattern` means: itself when it exists or holds no
// wildcard, else what it matches, sorted; itself again when that is nothing.
std::vector<std::string> ExpandPattern(const std::string& pattern);

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_INPUT_H_
