#include "lib/offload/offload_result.h"

#include <algorithm>

namespace firstframe {

absl::string_view OffloadStrategyName(OffloadStrategy strategy) {
  switch (strategy) {
    case OffloadStrategy::kFrozen:
      return "frozen";
    case OffloadStrategy::kRoundtrip:
      return "roundtrip";
    case OffloadStrategy::kMapped:
      return "mapped";
    case OffloadStrategy::kLayerwise:
      return "layerwise";
  }
  return "";
}

std::optional<OffloadStrategy> ParseOffloadStrategy(absl::string_view name) {
  for (const OffloadStrategy strategy :
       {OffloadStrategy::kFrozen, OffloadStrategy::kRoundtrip,
        OffloadStrategy::kMapped, OffloadStrategy::kLayerwise}) {
    if (OffloadStrategyName(strategy) == name) return strategy;
  }
  return std::nullopt;
}

double OffloadBenchResult::limit_gb_per_s() const {
  if (pinned_h2d_gb_per_s.empty()) return 0;
  return *std::max_element(pinned_h2d_gb_per_s.begin(),
                           pinned_h2d_gb_per_s.end());
}

}  // namespace firstframe
