// How large an error is usual at a place of a model: what the same
// sub-operation showed at earlier depths, and the same module at earlier steps.

#ifndef LIB_ACTIVATION_LEVEL_HISTORY_H_
#define LIB_ACTIVATION_LEVEL_HISTORY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "lib/activation/trace_table.h"

namespace firstframe {

// The last six values of something.
class RecentValues {
 public:
  static constexpr int kWindow = 6;
  static constexpr int kEnough = 3;  // fewer are no history

  void Push(float value) {
    // Most rows of most traces do not differ: zeros after zeros change nothing.
    if (value == 0 && zeros_ == kWindow) return;
    zeros_ = static_cast<uint8_t>(value == 0 ? zeros_ + 1 : 0);
    values_[next_] = value;
    next_ = static_cast<uint8_t>(next_ + 1 == kWindow ? 0 : next_ + 1);
    count_ += count_ < kWindow;
  }
  // The newest; 0 when empty.
  float last() const { return values_[(next_ == 0 ? kWindow : next_) - 1]; }
  bool IsEnough() const { return count_ >= kEnough; }
  bool AnyAbove(double level) const {
    for (const float value : values_) {
      if (value > level) return true;
    }
    return false;
  }
  double Median() const;  // 0 when empty

 private:
  std::array<float, kWindow> values_ = {};
  uint8_t count_ = 0, next_ = 0;
  uint8_t zeros_ = 0;  // pushed last, up to kWindow
};

// The two measures of a difference: docs/trace_diff.md.
enum Channel : uint8_t { kCoherent, kEnergy };
inline constexpr int kNumChannels = 2;

// What a healthy row would show at most.
struct ExpectedLevel {
  double level = 0;
  // Known from rows before, or from inputs without an error; not guessed.
  bool from_history = false;
};

// Rows are given in the order of a trace: Begin, Expect for each channel, Push.
// Not thread-safe. Memory: 130 bytes a template and a module.
class LevelHistory {
 public:
  LevelHistory(size_t num_templates, size_t num_entities)
      : templates_(num_templates), entities_(num_entities) {}

  // A row of the sub-operation `tau` and module `entity`. A new step, or the
  // first module of `tau` once more, begins another pass: what earlier passes
  // showed at other depths does not count.
  void Begin(uint32_t tau, uint32_t entity, int32_t step);

  // `floor`: what precision explains at depth 0; `share` of it is what this
  // channel shows on average. It grows with sqrt(1 + rows of `tau` before),
  // unless `is_grafted`: inputs without an error of their own. `control`: what
  // a healthy pair shows for `tau`, which replaces the floor; 0: unknown.
  ExpectedLevel Expect(Channel channel, double floor, double share,
                       double control, bool is_grafted) const;

  // What the row showed; a negative energy is none.
  void Push(float coherent, float energy);

 private:
  using Channels = std::array<RecentValues, kNumChannels>;
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  // Where one run through some modules began.
  struct Pass {
    int32_t step = kNoStep;
    uint32_t first_entity = kNone;
    bool has_others = false;

    // Notes a row; returns whether another pass begins with it.
    bool Note(uint32_t entity, int32_t row_step);
  };
  struct TemplateState {
    Channels values;
    Pass pass;
    uint32_t depth = 0;  // rows before, in this pass
  };

  void PushOne(Channel channel, float value);
  // What this module showed at earlier steps, times what the modules just
  // before it have grown by since.
  double FromEarlierSteps(Channel channel) const;

  std::vector<TemplateState> templates_;
  std::vector<Channels> entities_;
  Pass pass_;        // of all modules
  Channels recent_;  // of whatever rows of it
  Channels growth_;  // of whatever modules, over their own past
  uint32_t tau_ = 0, entity_ = 0;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_LEVEL_HISTORY_H_
