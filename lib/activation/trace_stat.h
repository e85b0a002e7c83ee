// The statistics that a trace record can hold, by the names that
// FASTVIDEO_TRACE_STATS uses.

#ifndef LIB_ACTIVATION_TRACE_STAT_H_
#define LIB_ACTIVATION_TRACE_STAT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

enum class TraceStat {
  // FastVideo's eight, with its meaning.
  kAbsMean,
  kSum,
  kMin,
  kMax,
  kMean,
  kStd,
  kShape,
  kDtype,
  // Ours; docs/formats/activation_trace.md defines them.
  kNumel,
  kRms,
  kNan,
  kInfPos,
  kInfNeg,
  kZero,
  kAmaxIdx,
  kHSet,
  kHPos,
  kSk,
  kExpHist,
  kSamp,
};

inline constexpr int kNumTraceStats = 20;

absl::string_view TraceStatName(TraceStat stat);
std::optional<TraceStat> ParseTraceStat(absl::string_view name);

struct TraceStatSelection {
  std::vector<TraceStat> stats;       // in the order given, as written
  std::vector<std::string> warnings;  // one a name that is unknown
};

// Reads a comma-separated list. Names are trimmed and empty ones skipped; an
// unknown one is left out with a warning that lists those that exist. A name
// given twice counts once, at its first place, as a key of a Python dict does.
TraceStatSelection ParseTraceStats(absl::string_view spec);

// What has to be computed for `stats`.
StatsRequest RequestFor(const std::vector<TraceStat>& stats);

// Appends ", "name": value" for each of `stats`, in order.
void AppendTraceStats(const std::vector<TraceStat>& stats,
                      const TensorStats& values, DType dtype,
                      const Shape& shape, std::string* out);

// Returns "torch.bfloat16"; the safetensors name where PyTorch has none.
std::string TorchDTypeName(DType dtype);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_STAT_H_
