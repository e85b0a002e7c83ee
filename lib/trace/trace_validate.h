// Says whether a trace will open in the programs that people open traces in.
//
// The rules are those programs' own, found in their sources (2026-08): what
// Perfetto's JSON importer refuses or drops, what HolisticTraceAnalysis 0.6.1
// needs to see, what the TensorBoard profiler plugin expects. Each is described
// in docs/formats/trace_oddities.md.

#ifndef LIB_TRACE_TRACE_VALIDATE_H_
#define LIB_TRACE_TRACE_VALIDATE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class TraceConsumer { kPerfetto, kHta, kTensorBoard };

// Reads "perfetto,hta,tensorboard". InvalidArgument with the nearest name.
absl::StatusOr<std::vector<TraceConsumer>> ParseTraceConsumers(
    absl::string_view list);

const char* TraceConsumerName(TraceConsumer consumer);

struct TraceProblem {
  TraceConsumer consumer;
  bool is_error = false;  // else something is lost or shown wrongly
  std::string rule;       // "no_rank"
  std::string message;
  int64_t count = 1;
  // Of the first, in the unpacked file; -1: not at one place.
  int64_t first_offset = -1;
};

struct TraceValidation {
  std::string path;
  int64_t rank = -1;
  std::vector<TraceProblem> problems;  // errors first

  bool HasErrors() const;
};

struct TraceValidateOptions {
  std::vector<TraceConsumer> consumers;
  std::string temporary_folder = "/tmp";
};

// Reads the trace at `path` to its end, in constant memory.
absl::StatusOr<TraceValidation> ValidateTrace(
    const std::string& path, const TraceValidateOptions& options);

// Adds what only several traces together show: two of one rank (HTA keeps the
// last).
void CheckRanks(std::vector<TraceValidation>* validations);

void WriteValidationText(const TraceValidation& validation, std::ostream& out);
// JSONL: one line a problem (kind "problem"), then kind "validation".
void WriteValidationJsonl(const TraceValidation& validation,
                          const std::vector<TraceConsumer>& consumers,
                          std::ostream& out);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_VALIDATE_H_
