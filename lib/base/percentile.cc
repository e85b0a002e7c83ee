#include "lib/base/percentile.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lib/base/check.h"

namespace firstframe {

namespace {

// A percentile lies between two order statistics, or on the first.
struct Rank {
  size_t below = 0;
  size_t above = 0;
  double share = 0;

  double Of(double low, double high) const {
    return low + (high - low) * share;
  }
};

Rank RankOf(size_t size, double percent) {
  FF_CHECK(size > 0 && percent >= 0 && percent <= 100);
  const double rank = static_cast<double>(size - 1) * percent / 100;
  const auto below = static_cast<size_t>(std::floor(rank));
  return {below, std::min(below + 1, size - 1),
          rank - static_cast<double>(below)};
}

}  // namespace

double PercentileOfSorted(absl::Span<const double> sorted, double percent) {
  const Rank rank = RankOf(sorted.size(), percent);
  return rank.Of(sorted[rank.below], sorted[rank.above]);
}

std::vector<double> Percentiles(absl::Span<double> samples,
                                absl::Span<const double> percents) {
  std::vector<double> results;
  // What is selected stands where a sort would put it, with nothing larger
  // before it: the next, larger one is looked for behind it alone.
  auto begin = samples.begin();
  for (const double percent : percents) {
    const Rank rank = RankOf(samples.size(), percent);
    const auto below =
        samples.begin() + static_cast<std::ptrdiff_t>(rank.below);
    FF_CHECK(below >= begin);
    std::nth_element(begin, below, samples.end());
    begin = below;
    const double high = rank.above == rank.below
                            ? *below
                            : *std::min_element(below + 1, samples.end());
    results.push_back(rank.Of(*below, high));
  }
  return results;
}

double Percentile(std::vector<double> samples, double percent) {
  return Percentiles(absl::MakeSpan(samples), {percent})[0];
}

}  // namespace firstframe
