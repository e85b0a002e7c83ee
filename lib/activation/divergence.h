// The rule that says where two aligned traces part: docs/trace_diff.md.
//
// Error grows with depth even when nothing is wrong, so a row is judged by how
// far it stands above the same sub-operation at earlier depths and steps, and
// above what its precision explains, not by a fixed percentage.

#ifndef LIB_ACTIVATION_DIVERGENCE_H_
#define LIB_ACTIVATION_DIVERGENCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/align.h"
#include "lib/activation/pair_metrics.h"

namespace firstframe {

// Where the floors come from.
enum class ThresholdProfile { kAuto, kExact, kFp32, kTf32, kFp16, kBf16 };
absl::StatusOr<ThresholdProfile> ParseThresholdProfile(absl::string_view name);

// Medians of a healthy pair by template: "what this model does on its own".
struct ControlLevels {
  struct Level {
    double coherent = 0;
    double energy = 0;
  };
  absl::flat_hash_map<std::string, Level> by_template;
};

struct DivergenceOptions {
  ThresholdProfile profile = ThresholdProfile::kAuto;
  // A jump fires at these multiples of the level expected.
  double coherent_jump = 8;
  double energy_jump = 2.5;
  // The same with fewer than three rows of history.
  double coherent_jump_without_history = 12;
  double energy_jump_without_history = 3.75;
  // Ceilings that no history excuses.
  double energy_ceiling = 0.10;
  double abs_mean_ceiling = 0.05;
  double amax_ceiling = 0.25;
  const ControlLevels* control = nullptr;
  bool stop_at_first = false;
};

enum class FireReason : uint8_t {
  kNone,
  kHard,
  kCoherentJump,
  kEnergyJump,
  kCeiling,
  kExact,  // any difference, under the exact profile
};

struct RowVerdict {
  float coherent = 0;
  float energy = -1;
  float jump = 0;      // over the level expected, of the channel that is larger
  float expected = 0;  // level of that channel: the detection limit over jump
  FireReason reason = FireReason::kNone;
  uint8_t hard = 0;
  uint16_t flags = 0;

  static constexpr uint16_t kConfirmed = 1;     // rows downstream stay high
  static constexpr uint16_t kIsolated = 2;      // they do not
  static constexpr uint16_t kFoldedParent = 4;  // a module inside fired before
  static constexpr uint16_t kBothNonFinite = 8;
  static constexpr uint16_t kBitsDiffer = 16;
  static constexpr uint16_t kBitsEqual = 32;
  static constexpr uint16_t kByEnergy = 64;  // `jump` is the energy channel's
  static constexpr uint16_t kAtEnd = 128;    // too few rows follow to confirm
  static constexpr uint16_t kDiffers = 256;  // in anything at all

  bool Fires() const { return reason != FireReason::kNone; }
};
static_assert(sizeof(RowVerdict) == 20);

// A template whose every row carries the same numbers: a buffer read too late.
struct CaptureLint {
  std::string template_name;
  int64_t rows = 0;
  bool on_left = false;
};

struct Divergence {
  std::vector<RowVerdict> rows;  // one a pair, in the order of the pairs
  // Index of the pair that differs first; nothing when none does.
  std::optional<size_t> first;
  std::optional<size_t> first_bit_difference;
  int64_t num_fired = 0;
  int64_t num_different = 0;  // in anything at all, if only the last digit
  int64_t num_isolated = 0;   // jumps that nothing downstream confirms
  int64_t num_compared = 0;   // pairs with at least one number on both sides
  int64_t num_both_non_finite = 0;
  bool inputs_differ = false;  // the first pair of all already differs
  double worst_coherent = 0;
  double worst_energy = -1;
  double worst_projected = -1;
  double assumed_rounding = 0;  // for rows without a dtype; 0: not needed
  std::vector<CaptureLint> lints;
};

// Linear in the pairs.
Divergence FindDivergence(const Alignment& alignment,
                          const DivergenceOptions& options);

// Returns the medians of each template over an aligned healthy pair.
ControlLevels MeasureControl(const Alignment& alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_DIVERGENCE_H_
