#include "lib/activation/foreign_trace.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/activation/foreign_emitter.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"

namespace firstframe {

absl::StatusOr<TraceDialect> ParseTraceDialect(absl::string_view name) {
  if (name == "msprobe") return TraceDialect::kMsprobe;
  if (name == "sglang") return TraceDialect::kSglang;
  if (name == "te-log") return TraceDialect::kTeLog;
  if (name == "torchtitan") return TraceDialect::kTorchtitan;
  return absl::InvalidArgumentError(absl::StrCat(
      "dialect '", name, "': expected msprobe, sglang, te-log or torchtitan"));
}

absl::StatusOr<ForeignCounts> NormalizeTrace(
    absl::string_view text, TraceDialect dialect, const ForeignOptions& options,
    absl::FunctionRef<absl::Status(const std::string& line)> emit) {
  FF_ASSIGN_OR_RETURN(auto layers, CompileRegex(options.layers));
  ForeignEmitter out(std::move(layers), emit);
  switch (dialect) {
    case TraceDialect::kMsprobe:
      FF_RETURN_IF_ERROR(ReadMsprobe(text, &out));
      break;
    case TraceDialect::kSglang:
      FF_RETURN_IF_ERROR(ReadSglang(text, options.target_side, &out));
      break;
    case TraceDialect::kTeLog:
      FF_RETURN_IF_ERROR(ReadTeLog(text, &out));
      break;
    case TraceDialect::kTorchtitan:
      FF_RETURN_IF_ERROR(ReadTorchtitan(text, &out));
      break;
  }
  return out.counts;
}

}  // namespace firstframe
