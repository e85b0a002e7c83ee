#include "lib/activation/trace_options.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

// Reads "0, 15,31". An empty list means every step; Python's int() takes
// spaces and a sign.
absl::StatusOr<std::optional<std::set<int64_t>>> ParseSteps(
    absl::string_view spec) {
  if (absl::StripAsciiWhitespace(spec).empty()) return std::nullopt;
  std::set<int64_t> steps;
  for (absl::string_view word : absl::StrSplit(spec, ',')) {
    word = absl::StripAsciiWhitespace(word);
    if (word.empty()) continue;
    int64_t step = 0;
    if (!absl::SimpleAtoi(word, &step)) {
      return absl::InvalidArgumentError(
          absl::StrCat("FASTVIDEO_TRACE_STEPS: found '", word,
                       "', expected integers separated by commas"));
    }
    steps.insert(step);
  }
  return steps;
}

}  // namespace

TraceEnvironment ReadTraceEnvironment(
    absl::FunctionRef<std::optional<std::string>(absl::string_view)> get) {
  TraceEnvironment environment;
  environment.activations = get("FASTVIDEO_TRACE_ACTIVATIONS");
  environment.layers = get("FASTVIDEO_TRACE_LAYERS");
  environment.stats = get("FASTVIDEO_TRACE_STATS");
  environment.output = get("FASTVIDEO_TRACE_OUTPUT");
  environment.steps = get("FASTVIDEO_TRACE_STEPS");
  return environment;
}

absl::StatusOr<TraceOptions> ResolveTraceOptions(
    const TraceEnvironment& environment) {
  TraceOptions options;
  options.enabled = environment.activations.value_or("0") != "0";
  if (!options.enabled) return options;
  options.layers = environment.layers.value_or("");
  if (environment.output) options.output = *environment.output;
  if (environment.stats) {
    TraceStatSelection selection = ParseTraceStats(*environment.stats);
    options.stats = std::move(selection.stats);
    options.warnings = std::move(selection.warnings);
    if (options.stats.empty()) {
      options.warnings.push_back(
          "FASTVIDEO_TRACE_STATS yielded no valid stats; trace disabled");
      options.enabled = false;
      return options;
    }
  }
  FF_ASSIGN_OR_RETURN(options.steps,
                      ParseSteps(environment.steps.value_or("")));
  return options;
}

}  // namespace firstframe
