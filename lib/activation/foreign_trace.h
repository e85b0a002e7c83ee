// Reads other tools' dumps of tensor statistics into trace records.
//
// Formats, as their producers write them (read 2026-08):
//   msprobe     dump.json of Ascend's msprobe, statistics task: Max, Min, Mean,
//               Norm by module call, or checksums alone
//   sglang      comparator_report.jsonl of SGLang's dump comparator
//   te-log      statistics log of TransformerEngine's debug tools
//   torchtitan  log of torchtitan's activation tracer: norms and extremes by
//               operation

#ifndef LIB_ACTIVATION_FOREIGN_TRACE_H_
#define LIB_ACTIVATION_FOREIGN_TRACE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class TraceDialect { kMsprobe, kSglang, kTeLog, kTorchtitan };

// "msprobe", "sglang", "te-log", "torchtitan"; InvalidArgument otherwise.
absl::StatusOr<TraceDialect> ParseTraceDialect(absl::string_view name);

struct ForeignOptions {
  bool target_side =
      false;           // sglang: the target's statistics, not the baseline's
  std::string layers;  // searched for in module names; empty: all
};

struct ForeignCounts {
  int64_t records = 0;
  int64_t skipped = 0;  // entries without statistics, or lines of other kinds
};

// Calls `emit` with each record's line (without its end), in the order of the
// source. What a dialect prints coarsely carries "stat_rel" or "stat_abs", the
// precision of its numbers, which trace_diff allows for. DataLoss when `text`
// is not of the dialect or breaks off, with the byte; records before that have
// been emitted. InvalidArgument for a pattern that does not compile.
absl::StatusOr<ForeignCounts> NormalizeTrace(
    absl::string_view text, TraceDialect dialect, const ForeignOptions& options,
    absl::FunctionRef<absl::Status(const std::string& line)> emit);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_FOREIGN_TRACE_H_
