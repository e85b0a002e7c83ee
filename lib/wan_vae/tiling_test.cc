#include "lib/wan_vae/tiling.h"

#include <numeric>
#include <utility>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

FloatTensor Counting(Shape shape) {
  FloatTensor tensor = {.shape = std::move(shape)};
  int64_t count = 1;
  for (int64_t extent : tensor.shape) count *= extent;
  tensor.values.resize(count);
  std::iota(tensor.values.begin(), tensor.values.end(), 0.0f);
  return tensor;
}

TEST(CropSpatially, StopsAtTheEdges) {
  const FloatTensor crop = CropSpatially(Counting({1, 2, 1, 3, 4}), 1, 2, 5, 5);
  EXPECT_EQ(crop.shape, (Shape{1, 2, 1, 2, 2}));
  EXPECT_EQ(crop.values, (std::vector<float>{6, 7, 10, 11, 18, 19, 22, 23}));
}

TEST(SliceFrames, TakesFramesOfEachChannel) {
  const FloatTensor slice = SliceFrames(Counting({1, 2, 3, 1, 2}), 1, 2);
  EXPECT_EQ(slice.shape, (Shape{1, 2, 2, 1, 2}));
  EXPECT_EQ(slice.values, (std::vector<float>{2, 3, 4, 5, 8, 9, 10, 11}));
}

FloatTensor Constant(int64_t height, int64_t width, float value) {
  return {.shape = {1, 1, 1, height, width},
          .values = std::vector<float>(height * width, value)};
}

TEST(BlendTiles, RampsAcrossTheOverlap) {
  // Tiles of 4 every 2: an overlap of 2, blended half way at its second column.
  const TileGrid grid = {4, 4, 4, 2};
  const FloatTensor whole = BlendTiles(
      {{Constant(1, 4, 0), Constant(1, 4, 8), Constant(1, 2, 0)}}, grid, 1, 6);
  EXPECT_EQ(whole.values, (std::vector<float>{0, 0, 0, 4, 8, 4}));
}

TEST(BlendTiles, BlendsDownwardsFirstWithBlendedNeighbours) {
  const TileGrid grid = {2, 2, 1, 1};
  // An overlap of one row takes the upper tile's row as it is.
  const FloatTensor whole = BlendTiles({{Constant(2, 2, 1), Constant(2, 1, 2)},
                                        {Constant(1, 2, 3), Constant(1, 1, 4)}},
                                       grid, 2, 2);
  // Right column: its only column is the overlap, so the left tile's last one.
  EXPECT_EQ(whole.values, (std::vector<float>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace firstframe
