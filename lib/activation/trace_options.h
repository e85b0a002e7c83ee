// The five FASTVIDEO_TRACE_* variables, with FastVideo's exact meaning.
//
// Source: hao-ai-lab/FastVideo, fastvideo/hooks/activation_trace.py and
// fastvideo/envs.py, read 2026-11.

#ifndef LIB_ACTIVATION_TRACE_OPTIONS_H_
#define LIB_ACTIVATION_TRACE_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/trace_stat.h"

namespace firstframe {

// The variables as they are set; nothing where one is unset.
struct TraceEnvironment {
  std::optional<std::string> activations;  // FASTVIDEO_TRACE_ACTIVATIONS
  std::optional<std::string> layers;       // FASTVIDEO_TRACE_LAYERS
  std::optional<std::string> stats;        // FASTVIDEO_TRACE_STATS
  std::optional<std::string> output;       // FASTVIDEO_TRACE_OUTPUT
  std::optional<std::string> steps;        // FASTVIDEO_TRACE_STEPS
};

// Reads the five through `get`, which returns nothing for an unset variable.
// For main(): libraries do not read the environment.
TraceEnvironment ReadTraceEnvironment(
    absl::FunctionRef<std::optional<std::string>(absl::string_view)> get);

struct TraceOptions {
  bool enabled = false;
  // Searched for in module names, not matched whole; empty: every name.
  std::string layers;
  std::vector<TraceStat> stats = {TraceStat::kAbsMean, TraceStat::kSum};
  std::string output = "/tmp/fv_trace_<pid>.jsonl";  // <pid> is replaced
  // Steps to record; records without a step are then dropped. Nothing: all.
  std::optional<std::set<int64_t>> steps;

  // Firstframe's own; off by default, so that records equal FastVideo's.
  bool header = false;             // one {"trace_header": ...} record first
  std::optional<int> rank;         // adds "rank"
  std::optional<std::string> run;  // adds "run"
  bool call = false;  // adds "call": the how-many-th output of this name

  std::vector<std::string> warnings;
};

// Only an unset FASTVIDEO_TRACE_ACTIVATIONS, or "0", disables: "false" and ""
// enable. Unknown stats are warnings, and without any valid one the trace is
// off, with a warning. InvalidArgument for steps that are not integers, which
// FastVideo raises on too.
absl::StatusOr<TraceOptions> ResolveTraceOptions(
    const TraceEnvironment& environment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_OPTIONS_H_
