#include "lib/wan_vae/tiling.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace firstframe {
namespace {

// [planes, rows, columns]: batch, channels and frames in one.
struct Planes {
  explicit Planes(const FloatTensor& video)
      : count(video.shape[0] * video.shape[1] * video.shape[2]),
        height(video.shape[3]),
        width(video.shape[4]) {}
  int64_t count, height, width;
};

// Weights as diffusers' Python computes them, in double: 1 - y / n and y / n,
// each then rounded to float32 for the product.
struct BlendWeights {
  BlendWeights(int64_t index, int64_t extent)
      : of_neighbour(static_cast<float>(1.0 - static_cast<double>(index) /
                                                  static_cast<double>(extent))),
        of_tile(static_cast<float>(static_cast<double>(index) /
                                   static_cast<double>(extent))) {}
  float of_neighbour, of_tile;
};

// Blends the first rows of `tile` with the last rows of `above`.
void BlendVertically(const FloatTensor& above, FloatTensor& tile,
                     int64_t extent) {
  const Planes a(above), b(tile);
  extent = std::min({a.height, b.height, extent});
  for (int64_t p = 0; p < b.count; ++p) {
    for (int64_t y = 0; y < extent; ++y) {
      const BlendWeights weights(y, extent);
      const float* from =
          &above.values[(p * a.height + a.height - extent + y) * a.width];
      float* to = &tile.values[(p * b.height + y) * b.width];
      for (int64_t x = 0; x < b.width; ++x) {
        to[x] = from[x] * weights.of_neighbour + to[x] * weights.of_tile;
      }
    }
  }
}

// Blends the first columns of `tile` with the last columns of `before`.
void BlendHorizontally(const FloatTensor& before, FloatTensor& tile,
                       int64_t extent) {
  const Planes a(before), b(tile);
  extent = std::min({a.width, b.width, extent});
  for (int64_t row = 0; row < b.count * b.height; ++row) {
    const float* from = &before.values[row * a.width + a.width - extent];
    float* to = &tile.values[row * b.width];
    for (int64_t x = 0; x < extent; ++x) {
      const BlendWeights weights(x, extent);
      to[x] = from[x] * weights.of_neighbour + to[x] * weights.of_tile;
    }
  }
}

// Copies the first `height` x `width` of `tile` to (top, left) of `whole`.
void Paste(const FloatTensor& tile, int64_t height, int64_t width, int64_t top,
           int64_t left, FloatTensor& whole) {
  const Planes t(tile), w(whole);
  height = std::min({height, t.height, w.height - top});
  width = std::min({width, t.width, w.width - left});
  if (height <= 0 || width <= 0) return;
  for (int64_t p = 0; p < t.count; ++p) {
    for (int64_t y = 0; y < height; ++y) {
      const float* from = &tile.values[(p * t.height + y) * t.width];
      std::copy(from, from + width,
                &whole.values[(p * w.height + top + y) * w.width + left]);
    }
  }
}

}  // namespace

FloatTensor CropSpatially(const FloatTensor& video, int64_t top, int64_t left,
                          int64_t height, int64_t width) {
  const Planes v(video);
  FloatTensor crop;
  crop.shape = video.shape;
  crop.shape[3] = height = std::min(height, v.height - top);
  crop.shape[4] = width = std::min(width, v.width - left);
  crop.values.reserve(v.count * height * width);
  for (int64_t p = 0; p < v.count; ++p) {
    for (int64_t y = 0; y < height; ++y) {
      const float* from =
          video.values.data() + (p * v.height + top + y) * v.width + left;
      crop.values.insert(crop.values.end(), from, from + width);
    }
  }
  return crop;
}

FloatTensor SliceFrames(const FloatTensor& video, int64_t first,
                        int64_t count) {
  const int64_t frames = video.shape[2];
  const int64_t plane = video.shape[3] * video.shape[4];
  FloatTensor slice;
  slice.shape = video.shape;
  slice.shape[2] = count;
  slice.values.reserve(video.shape[0] * video.shape[1] * count * plane);
  for (int64_t c = 0; c < video.shape[0] * video.shape[1]; ++c) {
    const float* from = video.values.data() + (c * frames + first) * plane;
    slice.values.insert(slice.values.end(), from, from + count * plane);
  }
  return slice;
}

FloatTensor BlendTiles(std::vector<std::vector<FloatTensor>> rows,
                       const TileGrid& grid, int64_t height, int64_t width) {
  FF_CHECK(!rows.empty() && !rows[0].empty());
  FloatTensor whole;
  whole.shape = rows[0][0].shape;
  whole.shape[3] = height;
  whole.shape[4] = width;
  whole.values.resize(Planes(whole).count * height * width);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < rows[i].size(); ++j) {
      FloatTensor& tile = rows[i][j];
      if (i > 0) {
        BlendVertically(rows[i - 1][j], tile,
                        grid.tile_height - grid.stride_height);
      }
      if (j > 0) {
        BlendHorizontally(rows[i][j - 1], tile,
                          grid.tile_width - grid.stride_width);
      }
      Paste(tile, grid.stride_height, grid.stride_width, i * grid.stride_height,
            j * grid.stride_width, whole);
    }
  }
  return whole;
}

}  // namespace firstframe
