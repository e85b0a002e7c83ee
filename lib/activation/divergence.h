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

#include "absl/strings/string_view.h"
#include "lib/activation/align.h"
#include "lib/activation/capture_lint.h"
#include "lib/activation/control_levels.h"
#include "lib/activation/level_history.h"
#include "lib/activation/threshold_profile.h"

namespace firstframe {

// A measure fires at `jump` times the level expected, or, with fewer than three
// rows of history, at `jump_without_history` times.
struct ChannelOptions {
  double jump = 0;
  double jump_without_history = 0;
};

struct DivergenceOptions {
  ThresholdProfile profile = ThresholdProfile::kAuto;
  ChannelOptions coherent = {8, 12};
  ChannelOptions energy = {2.5, 3.75};
  // Ceilings that no history excuses.
  double energy_ceiling = 0.10;
  double abs_mean_ceiling = 0.05;
  double amax_ceiling = 0.25;
  // Every module was given the reference's inputs, so that nothing adds up.
  bool is_grafted = false;
  const ControlLevels* control = nullptr;
  bool stop_at_first = false;

  const ChannelOptions& channel(Channel which) const {
    return which == kEnergy ? energy : coherent;
  }
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
  float energy = -1;            // negative: not known
  float expected_coherent = 0;  // levels: what a healthy row would show
  float expected_energy = 0;
  FireReason reason = FireReason::kNone;
  uint8_t hard = 0;
  uint16_t flags = 0;

  static constexpr uint16_t kConfirmed = 1;     // rows downstream stay high
  static constexpr uint16_t kIsolated = 2;      // they do not
  static constexpr uint16_t kFoldedParent = 4;  // a module inside fired before
  static constexpr uint16_t kBothNonFinite = 8;
  static constexpr uint16_t kBitsDiffer = 16;
  static constexpr uint16_t kBitsEqual = 32;
  static constexpr uint16_t kByEnergy = 64;  // the larger jump is the energy's
  static constexpr uint16_t kAtEnd = 128;    // too few rows follow to confirm
  static constexpr uint16_t kDiffers = 256;  // in anything at all
  // The levels come from rows before, not from the floor alone.
  static constexpr uint16_t kCoherentHistory = 512;
  static constexpr uint16_t kEnergyHistory = 1024;
  static constexpr uint16_t kIsInput = 2048;
  static constexpr uint16_t kInherited =
      4096;  // its input fired: not its doing
  static constexpr uint16_t kNegligible =
      8192;  // far below its template's size

  bool Fires() const { return reason != FireReason::kNone; }
  bool Has(uint16_t flag) const { return (flags & flag) != 0; }
  Channel channel() const { return Has(kByEnergy) ? kEnergy : kCoherent; }
  // Of the channel that stands out more.
  double error() const { return Has(kByEnergy) ? energy : coherent; }
  double expected() const {
    return Has(kByEnergy) ? expected_energy : expected_coherent;
  }
  double jump() const { return expected() > 0 ? error() / expected() : 0; }
};
static_assert(sizeof(RowVerdict) == 20);

// Returns the smallest error that would not have been excused at `row`; nothing
// when the channel is not measured there.
std::optional<double> DetectionLimit(const RowVerdict& row, Channel channel,
                                     const DivergenceOptions& options);

// Pairs whose dtypes are not the same ones.
struct DtypeChange {
  uint8_t left = 0, right = 0;  // TraceNames
  int64_t pairs = 0;
  size_t first = 0;  // index of the first pair
};

struct Divergence {
  std::vector<RowVerdict> rows;  // one a pair, in the order of the pairs
  // Index of the pair that differs first; nothing when none does.
  std::optional<size_t> first;
  std::optional<size_t> first_bit_difference;
  int64_t num_fired = 0;
  int64_t num_different = 0;  // in anything at all, if only the last digit
  int64_t num_isolated = 0;   // jumps that nothing downstream confirms
  int64_t num_inherited = 0;  // outputs that fired behind an input that did
  int64_t num_compared = 0;   // pairs with at least one number on both sides
  int64_t num_both_non_finite = 0;
  bool has_inputs = false;  // some pairs are of modules' inputs
  // Nothing but inputs comes before the first divergence. Without inputs: the
  // first pair of all differs, and either the inputs do or that module is
  // wrong.
  bool inputs_differ = false;
  double worst_coherent = 0;
  double worst_energy = -1;
  double worst_projected = -1;
  double assumed_rounding = 0;  // for rows without a dtype; 0: not needed
  std::vector<CaptureLint> lints;
  std::vector<DtypeChange> dtype_changes;  // by the first pair
  DivergenceOptions options;               // what was used; without the control
};

// Whether a tensor's label is that of a module's input: "in", "in[0]", "in.x".
bool IsInputLabel(absl::string_view tensor);

// Linear in the pairs.
Divergence FindDivergence(const Alignment& alignment,
                          const DivergenceOptions& options);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_DIVERGENCE_H_
