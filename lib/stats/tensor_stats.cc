#include "lib/stats/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/stats/mix.h"

namespace firstframe {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Narrows as PyTorch's float32 accumulator ends up: too large is infinite.
float Narrow(double value) { return static_cast<float>(value); }

}  // namespace

int64_t SampleIndex(int k, int64_t numel) {
  return static_cast<int64_t>(
      GroupHash(static_cast<uint64_t>(k) ^ kSampleSeed) %
      static_cast<uint64_t>(numel));
}

TensorStats MergeStats(const TensorStats& a, const TensorStats& b) {
  TensorStats m = a;
  const double na = static_cast<double>(a.finite());
  const double nb = static_cast<double>(b.finite());
  if (b.finite() > 0) {
    if (a.finite() == 0) {
      m.mean = b.mean, m.m2 = b.m2, m.min = b.min, m.max = b.max;
    } else {
      // Chan, Golub, LeVeque 1979: updating formulae for sample variances.
      const double delta = b.mean - a.mean;
      m.mean = a.mean + delta * (nb / (na + nb));
      m.m2 = a.m2 + b.m2 + delta * delta * (na * nb / (na + nb));
      m.min = std::min(a.min, b.min);
      m.max = std::max(a.max, b.max);
    }
    if (a.amax_index < 0 || b.amax > a.amax) {
      m.amax = b.amax, m.amax_index = b.amax_index;
    }
  }
  m.numel += b.numel;
  m.nan += b.nan;
  m.inf_pos += b.inf_pos;
  m.inf_neg += b.inf_neg;
  m.zero += b.zero;
  m.sum += b.sum;
  m.abs_sum += b.abs_sum;
  m.h_set += b.h_set;
  m.h_pos += b.h_pos;
  for (int i = 0; i < kSketchSize; ++i) m.sketch[i] += b.sketch[i];
  for (int i = 0; i < kNumExponents; ++i) m.exponents[i] += b.exponents[i];
  m.samples = {};
  return m;
}

double Rms(const TensorStats& s) {
  if (s.finite() == 0) return 0;
  return std::sqrt(s.mean * s.mean + s.m2 / static_cast<double>(s.finite()));
}

float TorchSum(const TensorStats& s) {
  if (s.nan > 0 || (s.inf_pos > 0 && s.inf_neg > 0)) return kNan;
  if (s.inf_pos > 0) return kInf;
  if (s.inf_neg > 0) return -kInf;
  return Narrow(s.sum);
}

float TorchAbsMean(const TensorStats& s) {
  if (s.numel == 0 || s.nan > 0) return kNan;
  if (s.inf_pos > 0 || s.inf_neg > 0 || std::isinf(Narrow(s.abs_sum))) {
    return kInf;
  }
  return Narrow(s.abs_sum / static_cast<double>(s.numel));
}

float TorchMean(const TensorStats& s) {
  const float sum = TorchSum(s);
  if (s.numel == 0) return kNan;
  if (!std::isfinite(sum)) return sum;
  return Narrow(s.sum / static_cast<double>(s.numel));
}

float TorchStd(const TensorStats& s) {
  if (s.numel < 2 || s.finite() != s.numel) return kNan;
  return Narrow(std::sqrt(s.m2 / static_cast<double>(s.numel - 1)));
}

float TorchMin(const TensorStats& s) {
  if (s.nan > 0) return kNan;
  if (s.inf_neg > 0) return -kInf;
  return s.finite() > 0 ? s.min : kInf;
}

float TorchMax(const TensorStats& s) {
  if (s.nan > 0) return kNan;
  if (s.inf_pos > 0) return kInf;
  return s.finite() > 0 ? s.max : -kInf;
}

}  // namespace firstframe
