#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "lib/activation/divergence.h"

namespace firstframe {

bool IsInputLabel(absl::string_view tensor) {
  return tensor == "in" || absl::StartsWith(tensor, "in[") ||
         absl::StartsWith(tensor, "in.");
}

std::optional<double> DetectionLimit(const RowVerdict& row, Channel channel,
                                     const DivergenceOptions& options) {
  if (channel == kEnergy && row.energy < 0) return std::nullopt;
  const bool has_history =
      row.Has(channel == kEnergy ? RowVerdict::kEnergyHistory
                                 : RowVerdict::kCoherentHistory);
  const double factor = has_history
                            ? options.channel(channel).jump
                            : options.channel(channel).jump_without_history;
  return channel == kEnergy
             ? std::min(factor * row.expected_energy, options.energy_ceiling)
             : factor * row.expected_coherent;
}

}  // namespace firstframe
