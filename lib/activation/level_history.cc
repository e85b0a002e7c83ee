#include "lib/activation/level_history.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace firstframe {

namespace {

// Puts the smaller value first, without a branch: errors are in no order that a
// processor could guess.
inline void Order(float& low, float& high) {
  const float smaller = low < high ? low : high;
  high = low < high ? high : low;
  low = smaller;
}

// Of six: a sorting network, as far as the middle needs it.
double MedianOfSix(std::array<float, 6> v) {
  Order(v[0], v[5]);
  Order(v[1], v[3]);
  Order(v[2], v[4]);
  Order(v[1], v[2]);
  Order(v[3], v[4]);
  Order(v[0], v[3]);
  Order(v[2], v[5]);
  Order(v[0], v[1]);
  Order(v[2], v[3]);
  Order(v[4], v[5]);
  Order(v[1], v[2]);
  Order(v[3], v[4]);
  return 0.5 * (v[2] + v[3]);
}

}  // namespace

double RecentValues::Median() const {
  // Most rows of most traces do not differ at all.
  static constexpr std::array<float, kWindow> kZeros = {};
  if (std::memcmp(&values_, &kZeros, sizeof(values_)) == 0) return 0;
  if (count_ == kWindow) return MedianOfSix(values_);
  std::array<float, kWindow> sorted = values_;
  for (int i = 1; i < count_; ++i) {
    for (int j = i; j > 0; --j) Order(sorted[j - 1], sorted[j]);
  }
  const int middle = count_ / 2;
  return count_ % 2 == 1 ? sorted[middle]
                         : 0.5 * (sorted[middle] + sorted[middle - 1]);
}

bool LevelHistory::Pass::Note(uint32_t entity, int32_t row_step) {
  const bool begins = first_entity == kNone || step != row_step ||
                      (first_entity == entity && has_others);
  if (begins) {
    *this = {row_step, entity, false};
  } else {
    has_others |= first_entity != entity;
  }
  return begins;
}

void LevelHistory::Begin(uint32_t tau, uint32_t entity, int32_t step) {
  tau_ = tau;
  entity_ = entity;
  if (pass_.Note(entity, step)) recent_ = Channels();
  TemplateState& state = templates_[tau];
  if (state.pass.Note(entity, step)) {
    state.values = Channels();
    state.depth = 0;
  }
}

double LevelHistory::FromEarlierSteps(Channel channel) const {
  const RecentValues& at_steps = entities_[entity_][channel];
  return std::max<double>(at_steps.Median(), at_steps.last()) *
         std::max(1.0, growth_[channel].Median());
}

ExpectedLevel LevelHistory::Expect(Channel channel, double floor, double share,
                                   double control, bool is_grafted) const {
  const TemplateState& state = templates_[tau_];
  const RecentValues& at_depths = state.values[channel];
  const RecentValues& at_steps = entities_[entity_][channel];
  const double depth = is_grafted ? 1 : std::sqrt(1.0 + state.depth);
  ExpectedLevel expected;
  expected.from_history =
      is_grafted || at_depths.IsEnough() || at_steps.IsEnough();
  expected.level = control > 0 ? control : floor * share * depth;
  double& level = expected.level;
  if (at_depths.IsEnough()) level = std::max(level, at_depths.Median());
  if (!expected.from_history) {
    if (control <= 0) level = std::max(level, floor * depth);
    level = std::max(level, recent_[channel].Median());
  }
  if (at_steps.AnyAbove(level) || !at_depths.IsEnough()) {
    level = std::max(level, FromEarlierSteps(channel));
  }
  return expected;
}

void LevelHistory::PushOne(Channel channel, float value) {
  RecentValues& at_steps = entities_[entity_][channel];
  if (value > 0 && at_steps.last() > 0) {
    growth_[channel].Push(value / at_steps.last());
  }
  templates_[tau_].values[channel].Push(value);
  at_steps.Push(value);
  recent_[channel].Push(value);
}

void LevelHistory::Push(float coherent, float energy) {
  ++templates_[tau_].depth;
  PushOne(kCoherent, coherent);
  if (energy >= 0) PushOne(kEnergy, energy);
}

}  // namespace firstframe
