// Sums without rounding on the way, as Python's math.fsum and statistics.fmean.

#ifndef LIB_METRICS_EXACT_SUM_H_
#define LIB_METRICS_EXACT_SUM_H_

#include <cmath>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace firstframe {

// Returns the sum rounded once, ties aside (Shewchuk, "Adaptive precision
// floating-point arithmetic", 1997: non-overlapping partial sums). NaN and
// infinities propagate. Linear for all but contrived inputs.
inline double ExactSum(absl::Span<const double> values) {
  std::vector<double> partials;
  double plain = 0;
  for (double value : values) {
    plain += value;
    size_t kept = 0;
    for (double partial : partials) {
      if (std::fabs(value) < std::fabs(partial)) std::swap(value, partial);
      const double high = value + partial;
      const double low = partial - (high - value);
      if (low != 0) partials[kept++] = low;
      value = high;
    }
    partials.resize(kept);
    partials.push_back(value);
  }
  if (!std::isfinite(plain)) return plain;
  double sum = 0;
  for (size_t i = partials.size(); i > 0; --i) sum += partials[i - 1];
  return sum;
}

}  // namespace firstframe

#endif  // LIB_METRICS_EXACT_SUM_H_
