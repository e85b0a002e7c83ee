// Percentiles with linear interpolation between order statistics, as NumPy's
// default and as VideoX-Fun's metrics compute them.

#ifndef LIB_BASE_PERCENTILE_H_
#define LIB_BASE_PERCENTILE_H_

#include <vector>

#include "absl/types/span.h"

namespace firstframe {

// Returns the `percent`-th percentile (0 to 100) of `sorted`, ascending and not
// empty: the value at rank percent / 100 * (n - 1), interpolated.
double PercentileOfSorted(absl::Span<const double> sorted, double percent);

// The same of samples in any order, at each of `percents`, which ascend.
// Reorders `samples`. O(n) for each on average: it selects and does not sort.
std::vector<double> Percentiles(absl::Span<double> samples,
                                absl::Span<const double> percents);

// The same for one.
double Percentile(std::vector<double> samples, double percent);

}  // namespace firstframe

#endif  // LIB_BASE_PERCENTILE_H_
