// What windows of training steps say about the steps of a whole run: records
// hold a window's percentiles and sum, not its steps.

#ifndef LIB_METRICS_WINDOW_STEPS_H_
#define LIB_METRICS_WINDOW_STEPS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace firstframe {

// The measured steps of one window.
struct WindowSteps {
  int64_t steps = 0;
  double p50_s = 0;
  double p95_s = 0;
  std::optional<double> total_s;  // the steps' sum, where it is known
};

// For each step of a window, in ascending order of time: the least and the most
// that it can have taken.
struct StepBounds {
  std::vector<double> low_s;
  std::vector<double> high_s;  // infinite where nothing limits it
};

// Every assignment of times to the steps that has the window's percentiles and
// sum lies within the result; it need not be the tightest. Where no assignment
// has them (the record is of another program), the bounds are 0 and infinity.
// O(steps).
StepBounds BoundSteps(const WindowSteps& window);

// A percentile over the steps of several windows.
struct PooledPercentile {
  double value_s = 0;  // the estimate
  double low_s = 0;    // the true one is not below
  double high_s = 0;   // nor above; may be infinite

  // Whether the bounds leave open what "%.2f" prints.
  bool is_estimate() const;
};

struct PooledSteps {
  PooledPercentile p50;
  PooledPercentile p95;
};

// Exact for one window. For several, a window's quantile function, known at 50
// and 95 %, is taken as a straight line; the estimate is then moved into the
// bounds. Zero without steps.
PooledSteps PoolSteps(absl::Span<const WindowSteps> windows);

}  // namespace firstframe

#endif  // LIB_METRICS_WINDOW_STEPS_H_
