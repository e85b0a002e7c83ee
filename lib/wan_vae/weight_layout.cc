#include "lib/wan_vae/weight_layout.h"

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"
#include "lib/wan_vae/parallel.h"

namespace firstframe {
namespace {

// Every block is a multiple of this: one 64-byte line.
constexpr int64_t kLine = 16;

// Input channels that a thread packs at a time: their taps of a whole block lie
// in the second cache.
constexpr int64_t kInTile = 16;

// Floats worth another thread.
constexpr int64_t kGrain = 64 << 10;

int64_t NumBlocks(const WeightShape& shape, int64_t block) {
  return (shape.out + block - 1) / block;
}

}  // namespace

int64_t PackedWeightSize(const WeightShape& shape, int64_t block) {
  return NumBlocks(shape, block) * shape.taps * shape.in * block;
}

void PackWeights(const WeightShape& shape, const float* plain,
                 int64_t out_stride, int64_t block, float* packed) {
  const int64_t in_tiles = (shape.in + kInTile - 1) / kInTile;
  const auto pack_tile = [&](int64_t item) {
    const int64_t b = item / in_tiles, first = item % in_tiles * kInTile;
    const int64_t last = std::min(first + kInTile, shape.in);
    const int64_t rows = std::min(block, shape.out - b * block);
    const float* const from = plain + b * block * out_stride;
    for (int64_t tap = 0; tap < shape.taps; ++tap) {
      for (int64_t in = first; in < last; ++in) {
        float* const to =
            packed + ((b * shape.taps + tap) * shape.in + in) * block;
        const float* const column = from + in * shape.taps + tap;
        for (int64_t o = 0; o < rows; ++o) {
          to[o] = column[o * out_stride];
        }
        std::fill(to + rows, to + block, 0.0f);
      }
    }
  };
  const int64_t grain = kGrain / (block * kInTile * shape.taps) + 1;
  ParallelFor(NumBlocks(shape, block) * in_tiles, grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) pack_tile(i);
              });
}

void RepackWeights(const WeightShape& shape, const float* from,
                   int64_t from_block, float* to, int64_t to_block) {
  FF_CHECK(from_block % kLine == 0 && to_block % kLine == 0);
  const int64_t columns = shape.taps * shape.in;
  const int64_t lines = NumBlocks(shape, to_block) * (to_block / kLine);
  const int64_t from_lines =
      NumBlocks(shape, from_block) * (from_block / kLine);
  const auto line_of = [columns](int64_t line, int64_t block) {
    const int64_t per_block = block / kLine;
    return line / per_block * columns * block + line % per_block * kLine;
  };
  // A line is 16 output channels; it is padding where `from` has no such line.
  const auto repack_line = [&](int64_t line) {
    float* target = to + line_of(line, to_block);
    const bool is_padding = line >= from_lines;
    const float* source =
        is_padding ? nullptr : from + line_of(line, from_block);
    for (int64_t c = 0; c < columns; ++c) {
      if (is_padding) {
        std::fill_n(target + c * to_block, kLine, 0.0f);
      } else {
        std::memcpy(target + c * to_block, source + c * from_block,
                    kLine * sizeof(float));
      }
    }
  };
  ParallelFor(lines, kGrain / (columns * kLine) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) repack_line(i);
              });
}

}  // namespace firstframe
