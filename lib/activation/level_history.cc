#include "lib/activation/level_history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace firstframe {

double RecentValues::Median() const {
  // Most rows of most traces do not differ at all.
  static constexpr std::array<float, kWindow> kZeros = {};
  if (std::memcmp(&values_, &kZeros, sizeof(values_)) == 0) return 0;
  std::array<float, kWindow> sorted = values_;
  for (int i = 1; i < count_; ++i) {
    for (int j = i; j > 0 && sorted[j] < sorted[j - 1]; --j) {
      std::swap(sorted[j], sorted[j - 1]);
    }
  }
  const int middle = count_ / 2;
  return count_ % 2 == 1 ? sorted[middle]
                         : 0.5 * (sorted[middle] + sorted[middle - 1]);
}

void LevelHistory::Begin(uint32_t tau, uint32_t entity, int32_t step) {
  tau_ = tau;
  entity_ = entity;
  TemplateState& state = templates_[tau];
  const bool recurs = state.first_entity == entity && state.has_others;
  if (state.first_entity == kNone || state.step != step || recurs) {
    state = TemplateState();
    state.step = step;
    state.first_entity = entity;
  }
  state.has_others |= state.first_entity != entity;
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
  expected.from_history = at_depths.IsEnough() || at_steps.IsEnough();
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
  if (const float before = at_steps.last(); value > 0 && before > 0) {
    growth_[channel].Push(value / before);
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
