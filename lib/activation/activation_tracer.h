// Records statistics of module outputs while a model runs, in FastVideo's form.
//
// Off costs nothing in the forward path: Create() returns no tracer, so nothing
// is attached and no branch is there to take.

#ifndef LIB_ACTIVATION_ACTIVATION_TRACER_H_
#define LIB_ACTIVATION_ACTIVATION_TRACER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/activation/trace_options.h"
#include "lib/activation/trace_sink.h"
#include "lib/base/regex.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

// Returns one record's line, without its end, in FastVideo's key order: module,
// tensor, step, then rank, run and call where given, then the statistics.
struct TraceRecordKeys {
  std::string module;
  std::string tensor = "out";
  std::optional<int64_t> step;
  std::optional<int> rank;
  std::optional<std::string> run;
  std::optional<int64_t> call;
};
std::string FormatTraceRecord(const TraceRecordKeys& keys,
                              const std::vector<TraceStat>& stats,
                              const TensorStats& values, DType dtype,
                              const Shape& shape);

// Returns the header record's line. Readers that do not know it skip it: it has
// no "module".
std::string FormatTraceHeader(const TraceOptions& options);

// Thread-safe once the modules are attached.
class ActivationTracer {
 public:
  // Returns null when `options` has the trace off. Opens the output at once:
  // InvalidArgument for a pattern that RE2 refuses, codes from errno for the
  // file. `num_threads` serves the statistics of host tensors.
  static absl::StatusOr<std::unique_ptr<ActivationTracer>> Create(
      const TraceOptions& options, int64_t pid, int num_threads = 1);

  // Selects among `modules` (names as in named_modules(); the empty name of the
  // root is never traced). Returns what to tell the user: how many were
  // attached or, when none was, the pattern and some names it could match.
  std::string Attach(const std::vector<std::string>& modules);

  // Whether outputs of `module` are recorded.
  bool Traces(absl::string_view module) const {
    return attached_.contains(module);
  }

  // Whether a record would be kept at this thread's step.
  bool StepIsWanted() const;

  // Computes and writes one output's record. Measuring must not break the run:
  // an error is returned once, later ones are dropped.
  absl::Status Record(absl::string_view module, absl::string_view label,
                      const TensorView& tensor);
  // The same with statistics computed elsewhere (a device).
  absl::Status RecordStats(absl::string_view module, absl::string_view label,
                           const TensorStats& values, DType dtype,
                           const Shape& shape);

  StatsRequest request() const { return RequestFor(options_.stats); }
  const std::string& path() const { return sink_->path(); }
  size_t num_attached() const { return attached_.size(); }

 private:
  ActivationTracer(TraceOptions options, std::unique_ptr<const RE2> pattern,
                   std::unique_ptr<TraceSink> sink, int num_threads)
      : options_(std::move(options)),
        pattern_(std::move(pattern)),
        sink_(std::move(sink)),
        num_threads_(num_threads) {}

  absl::Status ReportOnce(const absl::Status& status);

  const TraceOptions options_;
  const std::unique_ptr<const RE2> pattern_;
  const std::unique_ptr<TraceSink> sink_;
  const int num_threads_;
  absl::flat_hash_set<std::string> attached_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> calls_ ABSL_GUARDED_BY(mutex_);
  bool has_reported_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ACTIVATION_TRACER_H_
