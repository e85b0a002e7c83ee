// Figures that every rendering of a weight_bench result shows. Internal to
// weight_bench_report.cc and weight_bench_json.cc.

#ifndef LIB_LOAD_WEIGHT_BENCH_FIGURES_H_
#define LIB_LOAD_WEIGHT_BENCH_FIGURES_H_

#include <optional>
#include <string>

#include "lib/load/load_mode.h"
#include "lib/load/weight_bench_types.h"

namespace firstframe::weight_bench_internal {

inline double Rate(const WeightBenchResult& result, double seconds) {
  return static_cast<double>(result.tensor_bytes) / 1e9 / seconds;
}

inline const ModeResult* FindMode(const WeightBenchResult& result,
                                  LoadMode mode) {
  for (const ModeResult& candidate : result.modes) {
    if (candidate.mode == mode && !candidate.samples.empty()) {
      return &candidate;
    }
  }
  return nullptr;
}

inline std::optional<double> FractionOfLimit(const WeightBenchResult& result,
                                             const ModeResult& mode) {
  if (!mode.limit.gb_per_s) return std::nullopt;
  return Rate(result, mode.BestSeconds()) / *mode.limit.gb_per_s;
}

// "yes", "NO", or "-" when no sample was asked.
inline std::string Verdict(const ModeResult& mode) {
  bool asked = false;
  for (const LoadSample& sample : mode.samples) {
    if (!sample.verified) continue;
    asked = true;
    if (!*sample.verified) return "NO";
  }
  return asked ? "yes" : "-";
}

}  // namespace firstframe::weight_bench_internal

#endif  // LIB_LOAD_WEIGHT_BENCH_FIGURES_H_
