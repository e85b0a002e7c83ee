// Where a series changes its level.

#ifndef LIB_METRICS_CHANGE_POINT_H_
#define LIB_METRICS_CHANGE_POINT_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"

namespace firstframe {

struct ChangePoint {
  size_t index = 0;   // first value of the new level
  double before = 0;  // mean of the segment that ends here
  double after = 0;   // and of the one that begins
};

// Splits `values` by binary segmentation: the split that lowers the squared
// error most, then the same on both sides, as long as it gains more than 3
// log(n) times the noise's variance (a Schwarz criterion for a mean and a
// position) and moves the level by at least `min_relative` of it. The noise
// comes from the median absolute first difference, so that steps do not inflate
// it. Segments have at least three values. O(n log n) typically. Empty for
// fewer than six values.
std::vector<ChangePoint> FindChangePoints(absl::Span<const double> values,
                                          double min_relative = 0.02);

}  // namespace firstframe

#endif  // LIB_METRICS_CHANGE_POINT_H_
