// Compares two samples by the ratio of their medians, with a bootstrap
// interval.

#ifndef LIB_METRICS_MEDIAN_RATIO_H_
#define LIB_METRICS_MEDIAN_RATIO_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace firstframe {

struct MedianRatio {
  double left = 0;  // medians
  double right = 0;
  std::optional<double> ratio;  // right / left; nothing when left is 0
  // Percentile bootstrap interval of the ratio; nothing for fewer than three
  // values on a side.
  std::optional<std::pair<double, double>> interval;
};

// Neither sample may be empty. `confidence` lies in (0, 1). Deterministic for a
// `seed`. The median of a resample of n is an order statistic whose rank
// follows Beta((n + 1) / 2, (n + 1) / 2), so a resample costs O(1), not O(n).
MedianRatio CompareMedians(std::vector<double> left, std::vector<double> right,
                           double confidence = 0.95, int resamples = 4000,
                           uint64_t seed = 1);

}  // namespace firstframe

#endif  // LIB_METRICS_MEDIAN_RATIO_H_
