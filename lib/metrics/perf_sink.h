// Where records and log lines go.

#ifndef LIB_METRICS_PERF_SINK_H_
#define LIB_METRICS_PERF_SINK_H_

#include <functional>
#include <ostream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/metrics/perf_settings.h"

namespace firstframe {

// Writes lines to `log` and records to the settings' JSONL file. A failure is
// said once, on `log`, and never reaches the measured run. Thread-safe.
class PerfSink {
 public:
  // `log` must outlive the sink; null: nothing is logged.
  PerfSink(PerfSettings settings, std::ostream* log)
      : settings_(std::move(settings)), log_(log) {}

  const PerfSettings& settings() const { return settings_; }

  // Writes `line` and a line end if this rank logs.
  void Log(absl::string_view line);

  // Appends one line to the file of this rank; makes its folder. The file is
  // opened for each record, so that it may be moved away while the run goes on.
  void Append(absl::string_view json);

  // Says that measuring failed, the first time.
  void Complain(absl::string_view what);

 private:
  const PerfSettings settings_;
  absl::Mutex mutex_;
  std::ostream* const log_;
  bool has_complained_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_SINK_H_
