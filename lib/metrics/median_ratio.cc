#include "lib/metrics/median_ratio.h"

#include <algorithm>
#include <random>

#include "lib/base/check.h"
#include "lib/base/percentile.h"

namespace firstframe {
namespace {

constexpr size_t kMinSample = 3;

double ResampledMedian(const std::vector<double>& sorted,
                       std::gamma_distribution<double>& gamma,
                       std::mt19937_64& random) {
  const double a = gamma(random);
  const double b = gamma(random);
  const double rank = a / (a + b) * static_cast<double>(sorted.size());
  return sorted[std::min(static_cast<size_t>(rank), sorted.size() - 1)];
}

}  // namespace

MedianRatio CompareMedians(std::vector<double> left, std::vector<double> right,
                           double confidence, int resamples, uint64_t seed) {
  FF_CHECK(!left.empty() && !right.empty());
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  MedianRatio result;
  result.left = PercentileOfSorted(left, 50);
  result.right = PercentileOfSorted(right, 50);
  if (result.left == 0) return result;
  result.ratio = result.right / result.left;
  if (left.size() < kMinSample || right.size() < kMinSample) return result;
  std::mt19937_64 random(seed);
  const auto shape = [](const std::vector<double>& sample) {
    return std::gamma_distribution<double>(
        (static_cast<double>(sample.size()) + 1) / 2, 1.0);
  };
  auto left_gamma = shape(left);
  auto right_gamma = shape(right);
  std::vector<double> ratios;
  ratios.reserve(static_cast<size_t>(resamples));
  for (int i = 0; i < resamples; ++i) {
    const double below = ResampledMedian(left, left_gamma, random);
    const double above = ResampledMedian(right, right_gamma, random);
    if (below != 0) ratios.push_back(above / below);
  }
  if (ratios.empty()) return result;
  std::sort(ratios.begin(), ratios.end());
  const double tail = (1 - confidence) / 2 * 100;
  result.interval = {PercentileOfSorted(ratios, tail),
                     PercentileOfSorted(ratios, 100 - tail)};
  return result;
}

}  // namespace firstframe
