#include "lib/metrics/window_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <utility>

#include "lib/base/percentile.h"

namespace firstframe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A window of more steps than that counts as one of so many.
constexpr int64_t kMaxWindowSteps = 100000;
// Bounds cost several passes over all steps; of more windows than that there
// are none.
constexpr size_t kMaxBoundedWindows = 4096;
// Steps that an estimate is made of, about; of more, windows are drawn.
constexpr double kMaxPoints = 1e6;

int64_t CountOf(const WindowSteps& window) {
  return std::clamp<int64_t>(window.steps, 0, kMaxWindowSteps);
}

// One window's bounds, narrowed by what is known until nothing changes.
class Narrower {
 public:
  Narrower(const WindowSteps& window, size_t count)
      : count_(count), low_(count, 0.0), high_(count, kInfinity) {
    AddPercentile(0.5, window.p50_s);
    AddPercentile(0.95, window.p95_s);
    if (window.total_s) total_s_ = *window.total_s;
  }

  // Returns whether any times fit.
  bool Run() {
    constexpr int kRounds = 4;  // the first does nearly all
    for (int round = 0; round < kRounds; ++round) {
      for (const Constraint& constraint : constraints_) Apply(constraint);
      Order();
      ApplyTotal();
      Order();
    }
    for (size_t i = 0; i < count_; ++i) {
      // Equal but for rounding is equal.
      if (low_[i] > high_[i] * (1 + 1e-9)) return false;
      low_[i] = std::min(low_[i], high_[i]);
    }
    return true;
  }

  StepBounds Take() { return {std::move(low_), std::move(high_)}; }

 private:
  // time[below] + share * (time[below + 1] - time[below]) = value_s.
  struct Constraint {
    size_t below;
    double share;
    double value_s;
  };

  void AddPercentile(double fraction, double value_s) {
    const double rank = fraction * static_cast<double>(count_ - 1);
    const double below = std::floor(rank);
    constraints_.push_back({static_cast<size_t>(below), rank - below, value_s});
  }

  void Apply(const Constraint& constraint) {
    const auto [i, share, value] = constraint;
    high_[i] = std::min(high_[i], value);
    if (share < 1e-9) {
      low_[i] = std::max(low_[i], value);
      return;
    }
    low_[i + 1] = std::max(low_[i + 1], value);
    high_[i + 1] =
        std::min(high_[i + 1], (value - (1 - share) * low_[i]) / share);
    if (std::isfinite(high_[i + 1])) {
      low_[i] = std::max(low_[i], (value - share * high_[i + 1]) / (1 - share));
    }
  }

  // Times ascend, and so do their bounds.
  void Order() {
    for (size_t i = 1; i < count_; ++i) {
      low_[i] = std::max(low_[i], low_[i - 1]);
    }
    for (size_t i = count_ - 1; i > 0; --i) {
      high_[i - 1] = std::min(high_[i - 1], high_[i]);
    }
  }

  void ApplyTotal() {
    if (!std::isfinite(total_s_)) return;
    // The steps from i on take no less than i each, those up to i no more.
    double below = 0;
    for (size_t i = 0; i < count_; ++i) {
      high_[i] = std::min(high_[i],
                          (total_s_ - below) / static_cast<double>(count_ - i));
      below += low_[i];
    }
    double above = 0;
    for (size_t i = count_; i > 0; --i) {
      low_[i - 1] =
          std::max(low_[i - 1], (total_s_ - above) / static_cast<double>(i));
      above += high_[i - 1];
    }
  }

  const size_t count_;
  double total_s_ = kInfinity;
  std::vector<Constraint> constraints_;
  std::vector<double> low_;
  std::vector<double> high_;
};

void Append(const std::vector<double>& from, std::vector<double>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// The window's steps on the straight line through both percentiles.
void AppendLine(const WindowSteps& window, std::vector<double>& times) {
  const int64_t points = CountOf(window);
  const double slope = (window.p95_s - window.p50_s) / 0.45;
  for (int64_t i = 0; i < points; ++i) {
    const double quantile =
        points > 1 ? static_cast<double>(i) / static_cast<double>(points - 1)
                   : 0.5;
    times.push_back(std::max(0.0, window.p50_s + slope * (quantile - 0.5)));
  }
}

void SetBounds(absl::Span<const WindowSteps> windows, PooledSteps& pooled) {
  std::vector<double> low;
  std::vector<double> high;
  for (const WindowSteps& window : windows) {
    const StepBounds bounds = BoundSteps(window);
    Append(bounds.low_s, low);
    Append(bounds.high_s, high);
  }
  // Interpolation next to infinity would give NaN.
  constexpr double kHuge = 1e300;
  for (double& time : high) time = std::min(time, kHuge);
  // Moving any step up moves no percentile down.
  const std::vector<double> lows = Percentiles(absl::MakeSpan(low), {50, 95});
  const std::vector<double> highs = Percentiles(absl::MakeSpan(high), {50, 95});
  const auto finite_or_infinity = [](double time) {
    return time < kHuge / 1e6 ? time : kInfinity;
  };
  pooled.p50.low_s = lows[0];
  pooled.p50.high_s = finite_or_infinity(highs[0]);
  pooled.p95.low_s = lows[1];
  pooled.p95.high_s = finite_or_infinity(highs[1]);
}

}  // namespace

StepBounds BoundSteps(const WindowSteps& window) {
  const auto count = static_cast<size_t>(CountOf(window));
  if (count == 0) return {};
  Narrower narrower(window, count);
  if (narrower.Run()) return narrower.Take();
  return {std::vector<double>(count, 0.0),
          std::vector<double>(count, kInfinity)};
}

bool PooledPercentile::is_estimate() const {
  return std::round(low_s * 100) != std::round(high_s * 100);
}

PooledSteps PoolSteps(absl::Span<const WindowSteps> windows) {
  PooledSteps pooled;
  if (windows.size() == 1) {
    const WindowSteps& only = windows[0];
    pooled.p50 = {only.p50_s, only.p50_s, only.p50_s};
    pooled.p95 = {only.p95_s, only.p95_s, only.p95_s};
    return pooled;
  }
  double total = 0;
  for (const WindowSteps& window : windows) {
    total += static_cast<double>(CountOf(window));
  }
  if (total == 0) return pooled;
  const bool draws = total > kMaxPoints;
  std::minstd_rand random;  // the same windows each time
  std::bernoulli_distribution is_drawn(std::min(1.0, kMaxPoints / total));
  std::vector<double> times;
  for (const WindowSteps& window : windows) {
    if (!draws || is_drawn(random)) AppendLine(window, times);
  }
  if (times.empty()) {  // none was drawn: there are few
    for (const WindowSteps& window : windows) AppendLine(window, times);
  }
  const std::vector<double> estimates =
      Percentiles(absl::MakeSpan(times), {50, 95});
  if (windows.size() <= kMaxBoundedWindows && !draws) {
    SetBounds(windows, pooled);
  } else {
    pooled.p50.high_s = pooled.p95.high_s = kInfinity;
  }
  pooled.p50.value_s =
      std::clamp(estimates[0], pooled.p50.low_s, pooled.p50.high_s);
  pooled.p95.value_s =
      std::clamp(estimates[1], pooled.p95.low_s, pooled.p95.high_s);
  return pooled;
}

}  // namespace firstframe
