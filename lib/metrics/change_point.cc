#include "lib/metrics/change_point.h"

#include <algorithm>
#include <cmath>

#include "lib/base/percentile.h"

namespace firstframe {
namespace {

constexpr size_t kMinSegment = 3;

class Segmenter {
 public:
  Segmenter(absl::Span<const double> values, double min_relative)
      : min_relative_(min_relative), sums_(values.size() + 1, 0.0) {
    for (size_t i = 0; i < values.size(); ++i) {
      sums_[i + 1] = sums_[i] + values[i];
    }
    std::vector<double> steps;
    for (size_t i = 1; i < values.size(); ++i) {
      steps.push_back(std::fabs(values[i] - values[i - 1]));
    }
    // A difference of two normal values has deviation sqrt(2) sigma, and its
    // median magnitude is 0.6745 of that.
    const double sigma = Percentile(steps, 50) / (0.6745 * std::sqrt(2.0));
    penalty_ = 3 * std::log(static_cast<double>(values.size())) * sigma * sigma;
  }

  void Split(size_t begin, size_t end) {
    size_t best = 0;
    double best_gain = 0;
    for (size_t at = begin + kMinSegment; at + kMinSegment <= end; ++at) {
      const double left = static_cast<double>(at - begin);
      const double right = static_cast<double>(end - at);
      const double jump = Mean(at, end) - Mean(begin, at);
      const double gain = jump * jump * left * right / (left + right);
      if (gain > best_gain) best = at, best_gain = gain;
    }
    if (best == 0 || best_gain <= penalty_) return;
    const double before = Mean(begin, best);
    const double after = Mean(best, end);
    if (std::fabs(after - before) < min_relative_ * std::fabs(before)) return;
    Split(begin, best);
    splits_.push_back(best);
    Split(best, end);
  }

  std::vector<ChangePoint> Points(size_t size) const {
    std::vector<ChangePoint> points;
    for (size_t i = 0; i < splits_.size(); ++i) {
      const size_t begin = i == 0 ? 0 : splits_[i - 1];
      const size_t end = i + 1 < splits_.size() ? splits_[i + 1] : size;
      points.push_back(
          {splits_[i], Mean(begin, splits_[i]), Mean(splits_[i], end)});
    }
    return points;
  }

 private:
  double Mean(size_t begin, size_t end) const {
    return (sums_[end] - sums_[begin]) / static_cast<double>(end - begin);
  }

  const double min_relative_;
  double penalty_ = 0;
  std::vector<double> sums_;
  std::vector<size_t> splits_;
};

}  // namespace

std::vector<ChangePoint> FindChangePoints(absl::Span<const double> values,
                                          double min_relative) {
  if (values.size() < 2 * kMinSegment) return {};
  if (!std::all_of(values.begin(), values.end(),
                   [](double value) { return std::isfinite(value); })) {
    return {};
  }
  Segmenter segmenter(values, min_relative);
  segmenter.Split(0, values.size());
  return segmenter.Points(values.size());
}

}  // namespace firstframe
