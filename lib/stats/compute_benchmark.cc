// Statistics of one tensor on one core; bytes are the tensor's own.
//
//   bazel run //lib/stats:compute_benchmark

#include <cstring>
#include <random>

#include "benchmark/benchmark.h"
#include "lib/stats/compute.h"
#include "lib/stats/tensor_stats.h"
#include "lib/tensor/host_tensor.h"

namespace firstframe {
namespace {

constexpr int64_t kElements = int64_t{1} << 22;  // larger than the L2 cache

HostTensor RandomTensor(DType dtype) {
  HostTensor tensor = *HostTensor::Create(dtype, {kElements});
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  auto bytes = tensor.mutable_bytes();
  const int64_t size = DTypeBits(dtype) / 8;
  for (int64_t i = 0; i < kElements; ++i) {
    const float value = normal(random);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, 4);
    if (dtype == DType::kBF16) bits >>= 16;
    if (dtype == DType::kF16) bits = 0x3000 + (bits & 0x0FFF);
    if (dtype == DType::kF8E4M3) bits = bits >> 20 & 0x77;
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return tensor;
}

void Run(benchmark::State& state, DType dtype, StatsRequest request) {
  const HostTensor tensor = RandomTensor(dtype);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        ComputeTensorStats(tensor.view(), {.request = request}));
  }
  state.SetBytesProcessed(state.iterations() * tensor.size_bytes());
}

constexpr StatsRequest kMoments = {};
constexpr StatsRequest kSketch = {.sketch = true};
constexpr StatsRequest kHashes = {.hashes = true};
constexpr StatsRequest kBoth = {.hashes = true, .sketch = true};
constexpr StatsRequest kAll = {
    .hashes = true, .sketch = true, .exponents = true, .samples = true};

BENCHMARK_CAPTURE(Run, bf16_moments, DType::kBF16, kMoments);
BENCHMARK_CAPTURE(Run, bf16_sketch, DType::kBF16, kSketch);
BENCHMARK_CAPTURE(Run, bf16_hashes, DType::kBF16, kHashes);
BENCHMARK_CAPTURE(Run, bf16_sketch_hashes, DType::kBF16, kBoth);
BENCHMARK_CAPTURE(Run, bf16_all, DType::kBF16, kAll);
BENCHMARK_CAPTURE(Run, f16_sketch_hashes, DType::kF16, kBoth);
BENCHMARK_CAPTURE(Run, f32_sketch_hashes, DType::kF32, kBoth);
BENCHMARK_CAPTURE(Run, f64_sketch_hashes, DType::kF64, kBoth);
BENCHMARK_CAPTURE(Run, f8_sketch_hashes, DType::kF8E4M3, kBoth);

}  // namespace
}  // namespace firstframe

BENCHMARK_MAIN();
