// What one pass over a tensor tells: moments, extremes, counts of odd values,
// two 64-bit hashes, a CountSketch and a histogram of exponents.
//
// Every element is read as float32 (PyTorch's `.float()`; the real part of a
// complex one), sums are kept in float64, and the result has the same bits for
// any number of threads and any instruction set.
// docs/formats/activation_trace.md defines the hashes, the sketch and the
// samples, with a NumPy reference.

#ifndef LIB_STATS_TENSOR_STATS_H_
#define LIB_STATS_TENSOR_STATS_H_

#include <array>
#include <cstdint>

namespace firstframe {

inline constexpr int kSketchSize = 64;
inline constexpr int kNumSamples = 32;
inline constexpr int kNumExponents = 256;

struct TensorStats {
  int64_t numel = 0;

  // Counts of all elements.
  int64_t nan = 0;
  int64_t inf_pos = 0;
  int64_t inf_neg = 0;
  int64_t zero = 0;  // both signs

  // Over the finite elements alone. `mean` is 0 where there is none.
  double sum = 0;
  double abs_sum = 0;
  double mean = 0;
  double m2 = 0;  // sum of (x - mean)^2
  float min = 0;
  float max = 0;
  float amax = 0;           // largest magnitude
  int64_t amax_index = -1;  // its first row-major index; -1: nothing finite

  // Sum of a mix of each element's bits: equal for any order of the elements.
  uint64_t h_set = 0;
  // The same with each element's index: equal for the same order alone.
  uint64_t h_pos = 0;
  // Linear: sketch(a) - sketch(b) = sketch(a - b), whose squared norm estimates
  // the squared norm of a - b within sqrt(2/64). Non-finite elements count as
  // 0.
  std::array<double, kSketchSize> sketch = {};
  // Finite elements by biased exponent of the float32; [0]: zero, subnormal.
  std::array<int64_t, kNumExponents> exponents = {};
  // Elements SampleIndex(0..), as many as min(32, numel).
  std::array<float, kNumSamples> samples = {};

  int64_t finite() const { return numel - nan - inf_pos - inf_neg; }
};

// What ComputeTensorStats fills beside the moments, extremes and counts.
struct StatsRequest {
  bool hashes = false;
  bool sketch = false;
  bool exponents = false;
  bool samples = false;
};

// Returns the row-major index of sample `k` in a tensor of `numel` > 0.
int64_t SampleIndex(int k, int64_t numel);

// Returns the statistics of the elements of both, `b` following `a` or being
// another shard. Sums, counts, sketches and hashes add, so that parts computed
// with their own index offset give what the whole gives; samples are dropped.
TensorStats MergeStats(const TensorStats& a, const TensorStats& b);

// Root of the mean square over the finite elements; 0 where there is none.
double Rms(const TensorStats& stats);

// What FastVideo's hook gives for the same tensor: float32 results in which NaN
// and infinities propagate. Undefined on an empty tensor where PyTorch raises
// (min, max); NaN where it gives NaN.
float TorchSum(const TensorStats& stats);
float TorchAbsMean(const TensorStats& stats);
float TorchMean(const TensorStats& stats);
float TorchStd(const TensorStats& stats);  // Bessel-corrected
float TorchMin(const TensorStats& stats);
float TorchMax(const TensorStats& stats);

}  // namespace firstframe

#endif  // LIB_STATS_TENSOR_STATS_H_
