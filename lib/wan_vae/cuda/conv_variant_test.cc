#include "lib/wan_vae/cuda/conv_variant.h"

#include <set>

#include "gtest/gtest.h"

namespace firstframe::cuda {
namespace {

TEST(PackedWord, EveryPlaceIsFilledOnce) {
  for (const int tile_channels : {8, 96, 192}) {
    std::set<int> offsets;
    std::set<std::pair<int, int>> elements;
    for (int row = 0; row < tile_channels; ++row) {
      for (int word = 0; word < kWordsPerChunk; ++word) {
        const PackedWord at = LocatePackedWord(tile_channels, row, word);
        EXPECT_GE(at.out_channel, 0);
        EXPECT_LT(at.out_channel, tile_channels);
        offsets.insert(at.offset_words);
        elements.insert({at.out_channel, at.in_word});
      }
    }
    const size_t count = static_cast<size_t>(tile_channels) * kWordsPerChunk;
    EXPECT_EQ(offsets.size(), count);
    EXPECT_EQ(*offsets.rbegin(), static_cast<int>(count) - 1);
    EXPECT_EQ(elements.size(), count);
  }
}

// Lane q of a quad holds words 4q..4q+3 of 16; step u multiplies its words 2u
// and 2u + 1 as columns q and q + 4 (PTX, layout of A of wgmma).
TEST(PackedWord, ColumnsFollowTheLanes) {
  for (int half = 0; half < 2; ++half) {
    for (int q = 0; q < 4; ++q) {
      for (int u = 0; u < 2; ++u) {
        const int step = 2 * half + u;
        EXPECT_EQ(LocatePackedWord(96, 0, 8 * step + q).in_word,
                  16 * half + 4 * q + 2 * u);
        EXPECT_EQ(LocatePackedWord(96, 0, 8 * step + q + 4).in_word,
                  16 * half + 4 * q + 2 * u + 1);
      }
    }
  }
}

// The sums of a lane, columns 8j + 2q and 8j + 2q + 1 of the result, are eight
// neighbouring channels in every 32.
TEST(PackedWord, RowsGiveEachLaneNeighbours) {
  for (int q = 0; q < 4; ++q) {
    for (int j = 0; j < 4; ++j) {
      for (int e = 0; e < 2; ++e) {
        EXPECT_EQ(LocatePackedWord(96, 32 + 8 * j + 2 * q + e, 0).out_channel,
                  32 + 8 * q + 2 * j + e);
      }
    }
  }
}

TEST(PickConvVariant, FitsTheLayer) {
  const auto tile = [](MathMode mode, int channels, int window,
                       Resample resample, bool planes) {
    return PickConvVariant(ConvKernelKind::kHopper, mode, channels, window,
                           resample, planes)
        .tile_channels;
  };
  EXPECT_EQ(tile(MathMode::kTf32, 96, 3, Resample::kNone, false), 96);
  EXPECT_EQ(tile(MathMode::kTf32, 192, 3, Resample::kNone, false), 192);
  EXPECT_EQ(tile(MathMode::kFp32, 192, 3, Resample::kNone, false), 96);
  EXPECT_EQ(tile(MathMode::kBf16, 16, 1, Resample::kNone, false), 192);
  EXPECT_EQ(tile(MathMode::kBf16, 192, 3, Resample::kDown, false), 96);
  EXPECT_EQ(tile(MathMode::kFp32, 3, 3, Resample::kNone, true), 8);
}

TEST(PackedWeightBytes, CountsTilesChunksTapsAndParts) {
  const ConvVariant fp32 = {ConvKernelKind::kHopper, MathMode::kFp32, 96, 3};
  EXPECT_EQ(PackedWeightBytes(fp32, 96, 96, 3), 2 * 4 * 96 * 96 * 27);
  const ConvVariant bf16 = {ConvKernelKind::kHopper, MathMode::kBf16, 192, 3};
  EXPECT_EQ(PackedWeightBytes(bf16, 384, 384, 3), 2 * 384 * 384 * 27);
  // 16 channels take a whole chunk of 32, 3 outputs a whole tile of 8.
  const ConvVariant out = {ConvKernelKind::kHopper, MathMode::kTf32, 8, 3};
  EXPECT_EQ(PackedWeightBytes(out, 3, 16, 1), 4 * 8 * 32 * 9);
}

TEST(CanFuseNorm, NeedsAllChannelsInOneTile) {
  const ConvVariant wide = {ConvKernelKind::kHopper, MathMode::kTf32, 192, 3};
  EXPECT_TRUE(CanFuseNorm(wide, 192));
  EXPECT_FALSE(CanFuseNorm(wide, 384));
  const ConvVariant portable = {ConvKernelKind::kPortable, MathMode::kTf32, 64};
  EXPECT_FALSE(CanFuseNorm(portable, 32));
}

}  // namespace
}  // namespace firstframe::cuda
