#include "lib/activation/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "lib/activation/confirm_jumps.h"
#include "lib/activation/dtype_precision.h"
#include "lib/activation/pair_metrics.h"
#include "lib/activation/trace_pair.h"
#include "lib/base/huge_pages.h"

namespace firstframe {
namespace {

// Coherent errors of a healthy run lie below one rounding, for roundings are
// mostly independent: docs/trace_diff_cases.md.
constexpr double kCoherentShare = 0.25;
// A layer rounds its input, its weights and its output.
constexpr double kRoundingsPerLayer = 2;
// Sums in another order: what float32 matrix products differ by between
// libraries, on top of the rounding of the result.
constexpr double kFloat32Kernel = 4e-7;
constexpr double kCoherentKernel = 2.4e-7;
// A tensor this far below its template's usual size is nothing.
constexpr double kNegligibleShare = 1e-6;
constexpr double kMinNumelForExtremes = 256;

// Largest errors of a module's inputs in one call.
struct InputState {
  int32_t step = kNoStep;
  uint32_t occurrence = 0;
  bool is_known = false;
  bool is_in_run = false;  // the occurrence is not known: of the last call
  bool fired = false;
  float coherent = 0;
  float energy = -1;
};

class Judge {
 public:
  Judge(const Alignment& alignment, const DivergenceOptions& options)
      : in_(alignment),
        options_(options),
        history_(alignment.templates.size(), alignment.entities.size()),
        sizes_(alignment.templates.size()),
        lint_a_(alignment.a, alignment.templates.size(), true),
        lint_b_(alignment.b, alignment.templates.size(), false) {
    out_.options = options;
    out_.options.control = nullptr;
    assumed_ = AssumedRounding(in_.a.table, in_.b.table);
    carried_ = CarriedRounding(in_.a.table, in_.b.table);
    if (options.control != nullptr) {
      control_.resize(alignment.templates.size());
      for (size_t i = 0; i < control_.size(); ++i) {
        const auto it = options.control->by_template.find(in_.templates[i]);
        if (it != options.control->by_template.end()) control_[i] = it->second;
      }
    }
    FindInputs();
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
      if (options_.stop_at_first && IsSettled(i)) break;
    }
    if (out_.rows.size() == in_.pairs.size()) {  // else it stopped early
      for (; run < in_.runs.size(); ++run) JudgeRun(in_.runs[run]);
    }
    ConfirmJumps(options_, &out_);
    FoldParents(in_, &out_);
    out_.inputs_differ = NothingButInputsBeforeFirst();
    for (CaptureLinter* const lint : {&lint_a_, &lint_b_}) {
      for (CaptureLint& found : lint->Finish(in_.templates)) {
        out_.lints.push_back(std::move(found));
      }
    }
    return std::move(out_);
  }

 private:
  // A jump needs the rows behind it for its confirmation; the rest does not.
  bool IsSettled(size_t i) const {
    const RowVerdict& v = out_.rows[i];
    return (v.Fires() && v.reason != FireReason::kCoherentJump &&
            v.reason != FireReason::kEnergyJump) ||
           (fired_at_ && i > *fired_at_ + kConfirmRows);
  }

  // Keys of the left trace that are inputs, and whose.
  void FindInputs() {
    const TraceNames& names = *in_.a.names;
    is_input_.resize(names.num_keys());
    for (uint32_t i = 0; i < names.num_keys(); ++i) {
      is_input_[i] = IsInputLabel(names.key(i).tensor);
      out_.has_inputs |= is_input_[i];
    }
    if (!out_.has_inputs) return;
    absl::flat_hash_map<absl::string_view, uint32_t> modules;
    for (uint32_t i = 0; i < names.num_keys(); ++i) {
      const auto [it, is_new] = modules.try_emplace(
          names.key(i).module, static_cast<uint32_t>(modules.size()));
      module_of_.push_back(it->second);
    }
    inputs_.resize(modules.size());
  }

  // The inputs of the call whose output `row` is; null when not recorded.
  const InputState* InputsOf(const TraceRow& row) const {
    if (!out_.has_inputs || is_input_[row.key]) return nullptr;
    const InputState& state = inputs_[module_of_[row.key]];
    return state.is_known && state.step == row.step &&
                   (state.is_in_run || state.occurrence == row.occurrence)
               ? &state
               : nullptr;
  }

  void NoteEqualInput(uint32_t key, int32_t step) {
    inputs_[module_of_[key]] = {
        .step = step, .is_known = true, .is_in_run = true, .energy = 0};
  }

  void NoteInput(const TraceRow& row, const RowVerdict& v) {
    InputState& state = inputs_[module_of_[row.key]];
    if (!state.is_known || state.is_in_run || state.step != row.step ||
        state.occurrence != row.occurrence) {
      state = {
          .step = row.step, .occurrence = row.occurrence, .is_known = true};
    }
    state.fired |= v.Fires();
    state.coherent = std::max(state.coherent, v.coherent);
    state.energy = std::max(state.energy, v.energy);
  }

  double Rounding(const TraceRow& a, const TraceRow& b) {
    if (options_.profile != ThresholdProfile::kAuto) {
      return ProfileRounding(options_.profile);
    }
    double rounding = carried_;
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

  void JudgeRow(size_t i) {
    const RowPair& pair = in_.pairs[i];
    const TraceRow& a = in_.a.table.rows[pair.a];
    const TraceRow& b = in_.b.table.rows[pair.b];
    const uint32_t entity = in_.entity_a[a.key];
    const uint32_t tau = in_.entities[entity].template_id;
    history_.Begin(tau, entity, a.step);
    const double rounding = Rounding(a, b);
    const double floor = std::max(rounding, kCoherentKernel / kCoherentShare);
    const InputState* const inputs = InputsOf(a);
    // Inputs without an error leave nothing to grow from.
    const bool is_grafted =
        options_.is_grafted ||
        (inputs != nullptr && inputs->coherent <= kCoherentShare * floor &&
         inputs->energy <= std::max(rounding, kFloat32Kernel));
    const ControlLevels::Level control =
        control_.empty() ? ControlLevels::Level() : control_[tau];
    const ExpectedLevel c = history_.Expect(kCoherent, floor, kCoherentShare,
                                            control.coherent, is_grafted);
    RowVerdict v;
    v.expected_coherent = static_cast<float>(c.level);
    if (c.from_history) v.flags |= RowVerdict::kCoherentHistory;
    if ((a.flags & b.flags & TraceRow::kUnread) != 0) {
      AddEqualRow(tau, a, v);
      return;
    }
    if (a.dtype != b.dtype) NoteDtypes(a, b, i);
    PairMetrics m = ComparePair(in_.a, pair.a, in_.b, pair.b);
    Weigh(tau, &m, &v);
    if (m.energy >= 0) {
      const ExpectedLevel e = history_.Expect(
          kEnergy, std::max(kRoundingsPerLayer * rounding, kFloat32Kernel), 1.0,
          control.energy, is_grafted);
      v.expected_energy = static_cast<float>(e.level);
      if (e.from_history) v.flags |= RowVerdict::kEnergyHistory;
    }
    Note(m, i, &v);
    Decide(m, &v);
    Excuse(i, m, inputs, &v);
    if (out_.has_inputs && is_input_[a.key]) {
      v.flags |= RowVerdict::kIsInput;
      NoteInput(a, v);
    }
    out_.rows.push_back(v);
    if (v.Fires() && !fired_at_) fired_at_ = i;
    history_.Push(v.coherent, v.energy);
    lint_a_.Look(pair.a, tau);
    lint_b_.Look(pair.b, tau);
  }

  // What JudgeRow does for equal lines, most of what there is in traces that
  // part late: no difference, nothing that fires, no numbers to lint.
  void AddEqualRow(uint32_t tau, const TraceRow& a, RowVerdict v) {
    v.flags |= RowVerdict::kBitsEqual;
    if (out_.has_inputs && is_input_[a.key]) {
      v.flags |= RowVerdict::kIsInput;
      NoteInput(a, v);
    }
    out_.rows.push_back(v);
    ++out_.num_compared;
    history_.Push(0, 0);
    lint_a_.Forget(tau);
    lint_b_.Forget(tau);
  }

  // What AddEqualRow does, for each line of a run.
  void JudgeRun(const EqualRun& run) {
    run.ForEachLine([&](uint32_t key, int32_t step) {
      const uint32_t entity = in_.entity_a[key];
      const uint32_t tau = in_.entities[entity].template_id;
      history_.Begin(tau, entity, step);
      history_.Push(0, 0);
      if (out_.has_inputs && is_input_[key]) NoteEqualInput(key, step);
      lint_a_.Forget(tau);
      lint_b_.Forget(tau);
    });
    out_.num_compared += static_cast<int64_t>(run.keys.size());
  }

  // Judges a tensor far below its template's usual size by that size: relative
  // to itself, noise would be large.
  void Weigh(uint32_t tau, PairMetrics* m, RowVerdict* v) {
    RecentValues& sizes = sizes_[tau];
    if (m->rms > 0 && sizes.AnyAbove(m->rms / kNegligibleShare)) {
      const double share = m->rms / sizes.Median();
      if (share < kNegligibleShare) {
        v->flags |= RowVerdict::kNegligible;
        for (double* const error :
             {&m->coherent, &m->abs_mean_change, &m->amax_change}) {
          *error *= share;
        }
        if (m->energy > 0) m->energy *= share;
      }
    }
    sizes.Push(static_cast<float>(m->rms));
  }

  void NoteDtypes(const TraceRow& a, const TraceRow& b, size_t i) {
    for (DtypeChange& change : out_.dtype_changes) {
      if (change.left == a.dtype && change.right == b.dtype) {
        ++change.pairs;
        return;
      }
    }
    out_.dtype_changes.push_back({a.dtype, b.dtype, 1, i});
  }

  void Note(const PairMetrics& m, size_t i, RowVerdict* v) {
    v->coherent = static_cast<float>(m.coherent);
    v->energy = static_cast<float>(m.energy);
    v->hard = m.hard;
    out_.num_compared += m.has_values || m.hard != 0 || m.both_non_finite;
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

  // How far a channel stands above what fires: 1 fires.
  double ShareOfLimit(const RowVerdict& v, Channel channel) const {
    const auto limit = DetectionLimit(v, channel, options_);
    if (!limit || *limit <= 0) return 0;
    return (channel == kEnergy ? v.energy : v.coherent) / *limit;
  }

  void Decide(const PairMetrics& m, RowVerdict* v) const {
    const double coherent = ShareOfLimit(*v, kCoherent);
    const double energy = ShareOfLimit(*v, kEnergy);
    if (energy > coherent) v->flags |= RowVerdict::kByEnergy;
    if (m.hard != 0) {
      v->reason = FireReason::kHard;
    } else if (options_.profile == ThresholdProfile::kExact) {
      if (m.differs) v->reason = FireReason::kExact;
    } else if (m.energy > options_.energy_ceiling ||
               m.abs_mean_change > options_.abs_mean_ceiling ||
               (m.amax_change > options_.amax_ceiling &&
                m.numel >= kMinNumelForExtremes)) {
      v->reason = FireReason::kCeiling;
    } else if (energy > 1) {
      v->reason = FireReason::kEnergyJump;
    } else if (coherent > 1) {
      v->reason = FireReason::kCoherentJump;
    }
  }

  // Takes the blame off rows that only hand on what came to them.
  void Excuse(size_t i, const PairMetrics& m, const InputState* inputs,
              RowVerdict* v) {
    if (!v->Fires()) return;
    // A container, a dropout or an identity hands the tensor of the row before
    // on: it is judged where it came up first.
    if (m.hard == 0 && RepeatsPrevious(i) && !out_.rows[i - 1].Fires()) {
      v->reason = FireReason::kNone;
    } else if (inputs != nullptr && inputs->fired) {
      v->reason = FireReason::kNone;
      v->flags |= RowVerdict::kInherited;
      ++out_.num_inherited;
    }
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

  bool NothingButInputsBeforeFirst() const {
    if (!out_.first) return false;
    if (in_.PairNumber(*out_.first) == 0) return true;
    if (!in_.runs.empty() && in_.run_pairs[0] <= *out_.first) return false;
    return out_.rows[*out_.first].Has(RowVerdict::kIsInput) &&
           std::all_of(
               out_.rows.begin(), out_.rows.begin() + *out_.first,
               [](const RowVerdict& v) { return v.Has(RowVerdict::kIsInput); });
  }

  const Alignment& in_;
  const DivergenceOptions& options_;
  LevelHistory history_;
  std::vector<RecentValues> sizes_;  // root mean squares, by template
  std::vector<ControlLevels::Level> control_;
  std::vector<double> roundings_;
  CaptureLinter lint_a_, lint_b_;
  std::vector<bool> is_input_;       // by key
  std::vector<uint32_t> module_of_;  // by key, when there are inputs
  std::vector<InputState> inputs_;   // by module
  double assumed_ = 0, carried_ = 0;
  std::optional<size_t> fired_at_;
  Divergence out_;
};

}  // namespace

Divergence FindDivergence(const Alignment& alignment,
                          const DivergenceOptions& options) {
  return Judge(alignment, options).Run();
}

}  // namespace firstframe
