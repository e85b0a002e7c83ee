// The layout in which oneDNN's convolutions read their weights.
//
// Packed weights are [out / block, taps, in, block] with the last block filled
// up with zeros; oneDNN calls it "Acdeb48a" for a block of 48 and has no fast
// way from one block to another, which is what a new input size can ask for.

#ifndef LIB_WAN_VAE_WEIGHT_LAYOUT_H_
#define LIB_WAN_VAE_WEIGHT_LAYOUT_H_

#include <cstdint>

namespace firstframe {

struct WeightShape {
  int64_t out = 0;
  int64_t in = 0;
  int64_t taps = 0;  // of time, height and width together
};

// Returns the floats that packed weights take.
int64_t PackedWeightSize(const WeightShape& shape, int64_t block);

// From PyTorch's [out, in, taps], where the weights of neighbouring output
// channels lie `out_stride` apart: in * taps, or more when `plain` points at
// some input channels of a wider layer. On all compute threads.
void PackWeights(const WeightShape& shape, const float* plain,
                 int64_t out_stride, int64_t block, float* packed);

// From one block to another; both are multiples of 16.
void RepackWeights(const WeightShape& shape, const float* from,
                   int64_t from_block, float* to, int64_t to_block);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_WEIGHT_LAYOUT_H_
