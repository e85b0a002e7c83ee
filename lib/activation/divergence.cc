#include "lib/activation/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/huge_pages.h"

namespace firstframe {
namespace {

constexpr int kWindow = 6;      // rows of history that count
constexpr int kMinHistory = 3;  // fewer are none
// An isolated jump, with nothing downstream to confirm it, must be this much
// larger to count.
constexpr double kIsolatedFactor = 2;
constexpr double kConfirmJump = 1.3;
constexpr size_t kConfirmRows = 12;  // looked at behind a jump
constexpr int kConfirmCount = 2;
// Coherent errors of a healthy run lie below one rounding, for roundings are
// mostly independent: docs/trace_diff_cases.md.
constexpr double kCoherentShare = 0.25;
// A layer rounds its input, its weights and its output.
constexpr double kRoundingsPerLayer = 2;
// Sums in another order: what float32 matrix products differ by between
// libraries, on top of the rounding of the result.
constexpr double kFloat32Kernel = 4e-7;
constexpr double kCoherentKernel = 2.4e-7;
constexpr int kLintRows = 3;

// The last few values of one channel.
struct History {
  std::array<float, kWindow> values = {};
  uint8_t count = 0;
  uint8_t next = 0;

  void Push(float value) {
    values[next] = value;
    next = static_cast<uint8_t>((next + 1) % kWindow);
    count = static_cast<uint8_t>(std::min<int>(count + 1, kWindow));
  }
  bool IsEnough() const { return count >= kMinHistory; }
  double Median() const {
    static constexpr std::array<float, kWindow> kZeros = {};
    if (std::memcmp(&values, &kZeros, sizeof(values)) == 0) return 0;
    std::array<float, kWindow> sorted = values;
    for (int i = 1; i < count; ++i) {
      for (int j = i; j > 0 && sorted[j] < sorted[j - 1]; --j) {
        std::swap(sorted[j], sorted[j - 1]);
      }
    }
    return count == 0
               ? 0
               : (count % 2 == 1
                      ? sorted[count / 2]
                      : 0.5 * (sorted[count / 2] + sorted[count / 2 - 1]));
  }
};

struct Channels {
  History coherent, energy;
};

// One template's past in the current step.
struct TemplateState {
  Channels history;
  int32_t step = kNoStep;
  uint32_t depth = 0;  // rows before, in this step
};

double ProfileRounding(ThresholdProfile profile) {
  switch (profile) {
    case ThresholdProfile::kFp32:
      return 2.4e-8;
    case ThresholdProfile::kTf32:
    case ThresholdProfile::kFp16:
      return 2.0e-4;
    case ThresholdProfile::kBf16:
      return 1.6e-3;
    default:
      return 0;
  }
}

// What a table's extremes, elements of the tensors, tell of their type.
enum class Extremes { kNone, kBf16, kWider };

// Whether every extreme is a bfloat16: the low 16 bits of the float32 are zero.
Extremes LookAtExtremes(const TraceTable& table) {
  Extremes found = Extremes::kNone;
  bool is_bf16 = false;
  int seen = 0;
  for (const TraceRow& row : table.rows) {
    if ((row.flags & TraceRow::kUnread) != 0 ||
        row.Kind(kMax) != ValueKind::kNumber) {
      continue;
    }
    found = is_bf16 ? Extremes::kBf16 : Extremes::kWider;
    if (row.Kind(kMin) != ValueKind::kNumber) continue;
    for (const TraceValue value : {kMin, kMax}) {
      uint32_t bits;
      std::memcpy(&bits, &row.values[value], 4);
      if ((bits & 0xFFFF) != 0) return Extremes::kWider;
    }
    is_bf16 = true;
    found = Extremes::kBf16;
    if (++seen == 1000) break;
  }
  return found;
}

class Judge {
 public:
  Judge(const Alignment& alignment, const DivergenceOptions& options)
      : in_(alignment),
        options_(options),
        templates_(alignment.templates.size()) {
    assumed_ = AssumedRounding();
    if (options.control != nullptr) {
      control_.resize(alignment.templates.size());
      for (size_t i = 0; i < control_.size(); ++i) {
        const auto it = options.control->by_template.find(in_.templates[i]);
        if (it != options.control->by_template.end()) control_[i] = it->second;
      }
    }
  }

  Divergence Run() {
    out_.rows.reserve(in_.pairs.size());
    if (!options_.stop_at_first) {
      AdviseHugePages(out_.rows.data(), in_.pairs.size() * sizeof(RowVerdict));
    }
    size_t run = 0;
    for (size_t i = 0; i < in_.pairs.size(); ++i) {
      for (; run < in_.runs.size() && in_.run_pairs[run] <= i; ++run) {
        JudgeRun(in_.runs[run]);
      }
      JudgeRow(i);
      if (options_.stop_at_first && out_.rows[i].Fires() &&
          out_.rows[i].reason != FireReason::kCoherentJump &&
          out_.rows[i].reason != FireReason::kEnergyJump) {
        break;
      }
      // A jump needs the rows behind it for its confirmation.
      if (options_.stop_at_first && fired_at_ &&
          i > *fired_at_ + kConfirmRows) {
        break;
      }
    }
    if (out_.rows.size() == in_.pairs.size()) {  // else it stopped early
      for (; run < in_.runs.size(); ++run) JudgeRun(in_.runs[run]);
    }
    Confirm();
    FoldParents();
    return std::move(out_);
  }

 private:
  // The rounding of rows that do not say their dtype: bfloat16, unless the
  // extremes show more bits. Such runs are mostly bfloat16, and a floor that is
  // too high only dulls the first rows; one too low would cry wolf.
  double AssumedRounding() const {
    const bool is_wider = LookAtExtremes(in_.a.table) == Extremes::kWider &&
                          LookAtExtremes(in_.b.table) == Extremes::kWider;
    return is_wider ? 2.4e-8 : 1.6e-3;
  }

  double Rounding(const TraceRow& a, const TraceRow& b) {
    if (options_.profile != ThresholdProfile::kAuto) {
      return ProfileRounding(options_.profile);
    }
    double rounding = 0;
    for (const auto& [side, row] : {std::pair(&in_.a, &a), {&in_.b, &b}}) {
      const uint8_t dtype = row->dtype;
      if (dtype >= roundings_.size()) roundings_.resize(dtype + 1, -1);
      if (roundings_[dtype] < 0) {
        const auto known = RoundingError(side->names->dtype(dtype));
        roundings_[dtype] = known.value_or(assumed_);
        if (!known && (row->flags & TraceRow::kUnread) == 0) {
          out_.assumed_rounding = assumed_;
        }
      }
      rounding = std::max(rounding, roundings_[dtype]);
    }
    return rounding;
  }

  struct Expected {
    double level = 0;
    double factor = 0;
    bool from_history = false;
  };

  // What a healthy row would show at most by the median of its history, its
  // precision, a control, and, without history, the rows just before it.
  Expected Expect(const History& history, const History& recent, double floor,
                  double share, double depth_factor, double control,
                  double with, double without) const {
    Expected e;
    e.from_history = history.IsEnough();
    e.factor = e.from_history ? with : without;
    e.level = control > 0 ? control : floor * share * depth_factor;
    if (e.from_history) {
      e.level = std::max(e.level, history.Median());
    } else {
      if (control <= 0) e.level = std::max(e.level, floor * depth_factor);
      if (recent.count > 0) e.level = std::max(e.level, recent.Median());
    }
    return e;
  }

  void JudgeRow(size_t i) {
    const RowPair& pair = in_.pairs[i];
    const TraceRow& a = in_.a.table.rows[pair.a];
    const TraceRow& b = in_.b.table.rows[pair.b];
    const uint32_t tau = in_.entities[in_.entity_a[a.key]].template_id;
    TemplateState& state = templates_[tau];
    if (state.step != a.step) {
      state = TemplateState();
      state.step = a.step;
    }
    const double rounding = Rounding(a, b);
    const double depth = std::sqrt(1.0 + state.depth);
    const ControlLevels::Level control =
        control_.empty() ? ControlLevels::Level() : control_[tau];
    const Expected c =
        Expect(state.history.coherent, recent_.coherent,
               std::max(rounding, kCoherentKernel / kCoherentShare),
               kCoherentShare, depth, control.coherent, options_.coherent_jump,
               options_.coherent_jump_without_history);
    ++state.depth;
    if ((a.flags & b.flags & TraceRow::kUnread) != 0) {
      AddEqualRow(c, tau, &state);
      return;
    }
    const PairMetrics m = ComparePair(in_.a, pair.a, in_.b, pair.b);
    RowVerdict v;
    v.coherent = static_cast<float>(m.coherent);
    v.energy = static_cast<float>(m.energy);
    v.hard = m.hard;
    out_.num_compared += m.has_values || m.hard != 0 || m.both_non_finite;
    Note(m, i, &v);

    // Most traces have no sketches, and then nothing is expected of them.
    const Expected e =
        m.energy <= 0
            ? Expected()
            : Expect(state.history.energy, recent_.energy,
                     std::max(kRoundingsPerLayer * rounding, kFloat32Kernel),
                     1.0, depth, control.energy, options_.energy_jump,
                     options_.energy_jump_without_history);
    Decide(m, c, e, &v);
    // A container, a dropout or an identity hands the tensor of the row before
    // on: it is judged where it came up first.
    if (v.reason != FireReason::kNone && m.hard == 0 && RepeatsPrevious(i) &&
        !out_.rows[i - 1].Fires()) {
      v.reason = FireReason::kNone;
    }
    out_.rows.push_back(v);
    if (v.Fires() && !fired_at_) fired_at_ = i;

    state.history.coherent.Push(v.coherent);
    recent_.coherent.Push(v.coherent);
    if (m.energy >= 0) {
      state.history.energy.Push(v.energy);
      recent_.energy.Push(v.energy);
    }
    Lint(tau, pair);
  }

  // What JudgeRow does for equal lines, most of what there is in traces that
  // part late: no difference, nothing that fires, no numbers to lint.
  void AddEqualRow(const Expected& c, uint32_t tau, TemplateState* state) {
    RowVerdict v;
    v.expected = static_cast<float>(c.level);
    v.flags = RowVerdict::kBitsEqual;
    out_.rows.push_back(v);
    ++out_.num_compared;
    state->history.coherent.Push(0);
    recent_.coherent.Push(0);
    if (lints_.empty()) return;
    lints_[2 * tau].has_values = false;
    lints_[2 * tau + 1].has_values = false;
  }

  // What AddEqualRow does, for each line of a run.
  void JudgeRun(const EqualRun& run) {
    run.ForEachLine([&](uint32_t key, int32_t step) {
      const uint32_t tau = in_.entities[in_.entity_a[key]].template_id;
      TemplateState& state = templates_[tau];
      if (state.step != step) {
        state = TemplateState();
        state.step = step;
      }
      ++state.depth;
      state.history.coherent.Push(0);
      if (lints_.empty()) return;
      lints_[2 * tau].has_values = false;
      lints_[2 * tau + 1].has_values = false;
    });
    for (size_t i = std::min<size_t>(run.keys.size(), kWindow); i-- > 0;) {
      recent_.coherent.Push(0);
    }
    out_.num_compared += static_cast<int64_t>(run.keys.size());
  }

  // Whether both sides record the very numbers of the row before.
  bool RepeatsPrevious(size_t i) const {
    if (i == 0) return false;
    const auto same = [](const TraceSide& side, uint32_t row, uint32_t before) {
      const TraceRow& r = side.table.rows[row];
      const TraceRow& p = side.table.rows[before];
      return r.shape == p.shape &&
             ((r.flags | p.flags) & TraceRow::kUnread) == 0 &&
             std::memcmp(&r.values, &p.values, sizeof(r.values)) == 0;
    };
    return same(in_.a, in_.pairs[i].a, in_.pairs[i - 1].a) &&
           same(in_.b, in_.pairs[i].b, in_.pairs[i - 1].b);
  }

  void Note(const PairMetrics& m, size_t i, RowVerdict* v) {
    if (m.both_non_finite) {
      v->flags |= RowVerdict::kBothNonFinite;
      ++out_.num_both_non_finite;
    }
    if (m.differs) v->flags |= RowVerdict::kDiffers;
    out_.num_different += m.differs;
    if (m.bits == BitVerdict::kIdentical) v->flags |= RowVerdict::kBitsEqual;
    if (m.bits == BitVerdict::kDifferent) {
      v->flags |= RowVerdict::kBitsDiffer;
      if (!out_.first_bit_difference) out_.first_bit_difference = i;
    }
    out_.worst_coherent = std::max(out_.worst_coherent, m.coherent);
    out_.worst_energy = std::max(out_.worst_energy, m.energy);
    out_.worst_projected = std::max(out_.worst_projected, m.projected);
  }

  void Decide(const PairMetrics& m, const Expected& c, const Expected& e,
              RowVerdict* v) const {
    const double jump_c = m.coherent / c.level;
    const double jump_e = m.energy > 0 ? m.energy / e.level : 0;
    const bool by_energy = jump_e > 0 && jump_e / e.factor > jump_c / c.factor;
    v->jump = static_cast<float>(by_energy ? jump_e : jump_c);
    v->expected = static_cast<float>(by_energy ? e.level : c.level);
    if (by_energy) v->flags |= RowVerdict::kByEnergy;
    if (m.hard != 0) {
      v->reason = FireReason::kHard;
    } else if (options_.profile == ThresholdProfile::kExact) {
      if (m.differs) v->reason = FireReason::kExact;
    } else if (m.energy > options_.energy_ceiling ||
               m.abs_mean_change > options_.abs_mean_ceiling ||
               (m.amax_change > options_.amax_ceiling && m.numel >= 256)) {
      v->reason = FireReason::kCeiling;
    } else if (jump_e > e.factor) {
      v->reason = FireReason::kEnergyJump;
    } else if (jump_c > c.factor) {
      v->reason = FireReason::kCoherentJump;
    }
  }

  // Keeps the jumps that rows behind them confirm, and finds the first.
  void Confirm() {
    const size_t n = out_.rows.size();
    for (size_t i = 0; i < n; ++i) {
      RowVerdict& v = out_.rows[i];
      if (!v.Fires()) continue;
      int high = 0;
      size_t looked = 0;
      for (size_t j = i + 1; j < n && looked < kConfirmRows; ++j, ++looked) {
        high += out_.rows[j].jump >= kConfirmJump || out_.rows[j].Fires();
      }
      const bool is_jump = v.reason == FireReason::kCoherentJump ||
                           v.reason == FireReason::kEnergyJump;
      if (high >= kConfirmCount) {
        v.flags |= RowVerdict::kConfirmed;
      } else if (looked < kConfirmCount) {
        v.flags |= RowVerdict::kAtEnd;
      } else {
        v.flags |= RowVerdict::kIsolated;
        const double factor = (v.flags & RowVerdict::kByEnergy) != 0
                                  ? options_.energy_jump
                                  : options_.coherent_jump;
        if (is_jump && v.jump < kIsolatedFactor * factor) {
          ++out_.num_isolated;
          v.reason = FireReason::kNone;
          continue;
        }
      }
      ++out_.num_fired;
      if (!out_.first) out_.first = i;
    }
    out_.inputs_differ = out_.first && *out_.first == 0;
  }

  // A parent completes after its children: when one of them fired in the same
  // call, the parent's jump is its consequence.
  void FoldParents() {
    if (!out_.first) return;
    absl::flat_hash_map<std::string, size_t> fired;  // by name, the last time
    absl::flat_hash_map<std::string, size_t> seen;   // every parent's last row
    const auto name_of = [&](uint32_t key) -> const std::string& {
      return in_.entities[in_.entity_a[key]].module;
    };
    size_t run = 0;
    for (size_t i = *out_.first; i < out_.rows.size(); ++i) {
      for (; run < in_.runs.size() && in_.run_pairs[run] <= i; ++run) {
        if (in_.run_pairs[run] <= *out_.first) continue;
        std::vector<bool> done(in_.entity_a.size());
        for (const uint32_t key : in_.runs[run].keys) {
          if (!done[key]) seen[name_of(key)] = i - 1;
          done[key] = true;
        }
      }
      const std::string& name = name_of(in_.a.table.rows[in_.pairs[i].a].key);
      RowVerdict& v = out_.rows[i];
      const auto it = fired.find(name);
      const auto before = seen.find(name);
      if (v.Fires() && it != fired.end() &&
          (before == seen.end() || it->second > before->second)) {
        v.flags |= RowVerdict::kFoldedParent;
      }
      seen[name] = i;
      if (!v.Fires()) continue;
      for (size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0;
           dot = name.rfind('.', dot - 1)) {
        fired[name.substr(0, dot)] = i;
      }
    }
  }

  struct LintState {
    std::array<float, kNumTraceValues> values = {};
    uint32_t key = 0;
    int run = 0;
    bool has_values = false;
    bool reported = false;
  };

  void Lint(uint32_t tau, const RowPair& pair) {
    if (lints_.empty()) lints_.resize(2 * in_.templates.size());
    LintRow(in_.a.table.rows[pair.a], tau, true, &lints_[2 * tau]);
    LintRow(in_.b.table.rows[pair.b], tau, false, &lints_[2 * tau + 1]);
  }

  // Different modules of one template with the very same numbers, again and
  // again: what was recorded is one buffer.
  void LintRow(const TraceRow& row, uint32_t tau, bool left, LintState* state) {
    if ((row.flags & (TraceRow::kUnread | TraceRow::kHasOdd)) != 0 ||
        row.Kind(kAbsMean) != ValueKind::kNumber || row.values[kAbsMean] == 0) {
      state->has_values = false;
      return;
    }
    const bool same =
        state->has_values && row.key != state->key &&
        std::memcmp(&row.values, &state->values, sizeof(row.values)) == 0;
    state->run = same ? state->run + 1 : 1;
    state->values = row.values;
    state->key = row.key;
    state->has_values = true;
    if (state->run >= kLintRows && !state->reported) {
      state->reported = true;
      out_.lints.push_back({in_.templates[tau], state->run, left});
    }
  }

  const Alignment& in_;
  const DivergenceOptions& options_;
  std::vector<TemplateState> templates_;
  std::vector<ControlLevels::Level> control_;
  std::vector<double> roundings_;
  std::vector<LintState> lints_;
  Channels recent_;
  double assumed_ = 0;
  std::optional<size_t> fired_at_;
  Divergence out_;
};

double MedianOf(std::vector<float>* values) {
  if (values->empty()) return 0;
  const auto middle = values->begin() + values->size() / 2;
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

absl::StatusOr<ThresholdProfile> ParseThresholdProfile(absl::string_view name) {
  if (name == "auto") return ThresholdProfile::kAuto;
  if (name == "exact") return ThresholdProfile::kExact;
  if (name == "fp32") return ThresholdProfile::kFp32;
  if (name == "tf32") return ThresholdProfile::kTf32;
  if (name == "fp16") return ThresholdProfile::kFp16;
  if (name == "bf16") return ThresholdProfile::kBf16;
  return absl::InvalidArgumentError(
      absl::StrCat("threshold '", name,
                   "': expected auto, exact, fp32, tf32, fp16 or bf16"));
}

Divergence FindDivergence(const Alignment& alignment,
                          const DivergenceOptions& options) {
  return Judge(alignment, options).Run();
}

ControlLevels MeasureControl(const Alignment& alignment) {
  std::vector<std::vector<float>> coherent(alignment.templates.size());
  std::vector<std::vector<float>> energy(alignment.templates.size());
  for (const RowPair& pair : alignment.pairs) {
    const PairMetrics m = ComparePair(alignment.a, pair.a, alignment.b, pair.b);
    const uint32_t tau =
        alignment
            .entities[alignment.entity_a[alignment.a.table.rows[pair.a].key]]
            .template_id;
    coherent[tau].push_back(static_cast<float>(m.coherent));
    if (m.energy >= 0) energy[tau].push_back(static_cast<float>(m.energy));
  }
  ControlLevels levels;
  for (size_t tau = 0; tau < alignment.templates.size(); ++tau) {
    levels.by_template[alignment.templates[tau]] = {MedianOf(&coherent[tau]),
                                                    MedianOf(&energy[tau])};
  }
  return levels;
}

}  // namespace firstframe
