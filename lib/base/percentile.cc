#include "lib/base/percentile.h"

#include <algorithm>
#include <cmath>

#include "lib/base/check.h"

namespace firstframe {

double PercentileOfSorted(absl::Span<const double> sorted, double percent) {
  FF_CHECK(!sorted.empty() && percent >= 0 && percent <= 100);
  const double rank = static_cast<double>(sorted.size() - 1) * percent / 100;
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = rank - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * share;
}

double Percentile(std::vector<double> samples, double percent) {
  std::sort(samples.begin(), samples.end());
  return PercentileOfSorted(samples, percent);
}

}  // namespace firstframe
