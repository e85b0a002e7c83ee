#include "lib/activation/activation_tracer.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/activation/python_json.h"
#include "lib/activation/trace_step.h"
#include "lib/base/edit_distance.h"
#include "lib/base/status_macros.h"
#include "lib/stats/compute.h"

namespace firstframe {

std::string FormatTraceRecord(const TraceRecordKeys& keys,
                              const std::vector<TraceStat>& stats,
                              const TensorStats& values, DType dtype,
                              const Shape& shape) {
  std::string line = "{\"module\": ";
  AppendPythonString(keys.module, &line);
  line += ", \"tensor\": ";
  AppendPythonString(keys.tensor, &line);
  absl::StrAppend(
      &line, ", \"step\": ", keys.step ? absl::StrCat(*keys.step) : "null");
  if (keys.rank) absl::StrAppend(&line, ", \"rank\": ", *keys.rank);
  if (keys.run) {
    line += ", \"run\": ";
    AppendPythonString(*keys.run, &line);
  }
  if (keys.call) absl::StrAppend(&line, ", \"call\": ", *keys.call);
  AppendTraceStats(stats, values, dtype, shape, &line);
  line += "}";
  return line;
}

std::string FormatTraceHeader(const TraceOptions& options) {
  std::vector<std::string> names;
  for (const TraceStat stat : options.stats) {
    names.push_back(absl::StrCat("\"", TraceStatName(stat), "\""));
  }
  std::string line = absl::StrCat(
      "{\"trace_header\": {\"version\": 1, \"producer\": \"firstframe\", "
      "\"hash\": \"ff1\", \"sketch_size\": ",
      kSketchSize, ", \"samples\": ", kNumSamples,
      ", \"accumulation\": \"float64\", \"stats\": [",
      absl::StrJoin(names, ", "), "]");
  if (options.rank) absl::StrAppend(&line, ", \"rank\": ", *options.rank);
  if (options.run) {
    line += ", \"run\": ";
    AppendPythonString(*options.run, &line);
  }
  line += "}}";
  return line;
}

absl::StatusOr<std::unique_ptr<ActivationTracer>> ActivationTracer::Create(
    const TraceOptions& options, int64_t pid, int num_threads) {
  if (!options.enabled) return nullptr;
  auto pattern = CompileRegex(options.layers);
  if (!pattern.ok()) {
    return Annotate(pattern.status(), "FASTVIDEO_TRACE_LAYERS");
  }
  FF_ASSIGN_OR_RETURN(std::unique_ptr<TraceSink> sink,
                      TraceSink::Open(ExpandTracePath(options.output, pid)));
  if (options.header) {
    FF_RETURN_IF_ERROR(sink->Write(FormatTraceHeader(options)));
  }
  return absl::WrapUnique(new ActivationTracer(options, *std::move(pattern),
                                               std::move(sink), num_threads));
}

std::string ActivationTracer::Attach(const std::vector<std::string>& modules) {
  for (const std::string& name : modules) {
    if (!name.empty() && SearchRegex(*pattern_, name)) attached_.insert(name);
  }
  std::string message = absl::StrCat(
      "activation trace attached to ", attached_.size(), " modules (pattern '",
      options_.layers, "'), records go to ", path());
  if (attached_.empty() && modules.size() > 1) {
    const auto nearest = NearestName(options_.layers, modules);
    absl::StrAppend(&message, "; no module name matches: try '",
                    nearest ? *nearest : modules.back(), "'");
  }
  return message;
}

bool ActivationTracer::StepIsWanted() const {
  if (!options_.steps) return true;
  const std::optional<int64_t> step = CurrentTraceStep();
  return step && options_.steps->contains(*step);
}

absl::Status ActivationTracer::Record(absl::string_view module,
                                      absl::string_view label,
                                      const TensorView& tensor) {
  if (!StepIsWanted()) return absl::OkStatus();
  const auto values = ComputeTensorStats(
      tensor, {.request = request(), .num_threads = num_threads_});
  if (!values.ok()) return ReportOnce(Annotate(values.status(), module));
  return RecordStats(module, label, *values, tensor.dtype, tensor.shape);
}

absl::Status ActivationTracer::RecordStats(absl::string_view module,
                                           absl::string_view label,
                                           const TensorStats& values,
                                           DType dtype, const Shape& shape) {
  if (!StepIsWanted()) return absl::OkStatus();
  TraceRecordKeys keys;
  keys.module = std::string(module);
  keys.tensor = std::string(label);
  keys.step = CurrentTraceStep();
  keys.rank = options_.rank;
  keys.run = options_.run;
  if (options_.call) {
    absl::MutexLock lock(&mutex_);
    keys.call = calls_[absl::StrCat(module, "\n", label)]++;
  }
  return ReportOnce(sink_->Write(
      FormatTraceRecord(keys, options_.stats, values, dtype, shape)));
}

absl::Status ActivationTracer::ReportOnce(const absl::Status& status) {
  if (status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  return std::exchange(has_reported_, true) ? absl::OkStatus() : status;
}

}  // namespace firstframe
