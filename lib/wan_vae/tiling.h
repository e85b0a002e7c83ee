// Cutting a video into overlapping spatial tiles and blending the results.
//
// Source of the arithmetic: AutoencoderKLWan.tiled_decode of diffusers, read
// 2026-11: every stride a tile of the minimum size (smaller at the far edges);
// each result is blended linearly into its upper, then its left neighbour's
// overlap; the stride's share of each is kept.

#ifndef LIB_WAN_VAE_TILING_H_
#define LIB_WAN_VAE_TILING_H_

#include <cstdint>
#include <vector>

#include "lib/tensor/shape.h"

namespace firstframe {

// Owned float32 values, row-major.
struct FloatTensor {
  Shape shape = {};
  std::vector<float> values = {};
};

// Returns rows [top, top + height) and columns [left, left + width) of
// `video`, [batch, channels, frames, rows, columns], cut at its edges.
FloatTensor CropSpatially(const FloatTensor& video, int64_t top, int64_t left,
                          int64_t height, int64_t width);

// Returns frames [first, first + count) of `video`.
FloatTensor SliceFrames(const FloatTensor& video, int64_t first, int64_t count);

// Sizes on one side of the model, in that side's rows and columns.
struct TileGrid {
  int64_t tile_height = 0;
  int64_t tile_width = 0;
  int64_t stride_height = 0;
  int64_t stride_width = 0;
};

// Joins `rows` of tiles, as they came from inputs `grid` stride apart. `grid`
// is on the tiles' side; overlaps are tile minus stride wide. The result is cut
// to `height` x `width`. Tiles are used up.
FloatTensor BlendTiles(std::vector<std::vector<FloatTensor>> rows,
                       const TileGrid& grid, int64_t height, int64_t width);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_TILING_H_
