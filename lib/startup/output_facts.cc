#include "lib/startup/output_facts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

constexpr int64_t kBlock = 1 << 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct BlockFacts {
  float min = kInfinity;
  float max = -kInfinity;
  double sum = 0;
  bool is_finite = true;
};

BlockFacts DescribeBlock(const float* values, int64_t count) {
  // Several sums side by side: one alone waits for itself.
  constexpr int kLanes = 8;
  double sums[kLanes] = {};
  BlockFacts facts;
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i];
    facts.is_finite &= std::isfinite(value);
    facts.min = value < facts.min ? value : facts.min;
    facts.max = value > facts.max ? value : facts.max;
    sums[i % kLanes] += value;
  }
  for (const double sum : sums) facts.sum += sum;
  return facts;
}

}  // namespace

OutputFacts DescribeOutput(const FloatTensor& output) {
  const int64_t count = static_cast<int64_t>(output.values.size());
  std::vector<BlockFacts> blocks((count + kBlock - 1) / kBlock);
  ParallelFor(
      static_cast<int64_t>(blocks.size()), 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          blocks[i] = DescribeBlock(output.values.data() + i * kBlock,
                                    std::min(kBlock, count - i * kBlock));
        }
      });
  BlockFacts all;
  for (const BlockFacts& block : blocks) {
    all.is_finite &= block.is_finite;
    all.min = std::min(all.min, block.min);
    all.max = std::max(all.max, block.max);
    all.sum += block.sum;
  }
  return {.shape = output.shape,
          .is_finite = all.is_finite,
          .min = all.min,
          .max = all.max,
          .mean = all.sum / static_cast<double>(count)};
}

}  // namespace firstframe
