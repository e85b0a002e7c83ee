#include "lib/startup/latents.h"

#include <cmath>

#include "gtest/gtest.h"
#include "lib/startup/tensor_file.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

TEST(LatentShapeOfVideo, DividesByTheModelsFactors) {
  const WanVaeConfig config;
  EXPECT_THAT(LatentShapeOfVideo(config, 9, 480, 832),
              IsOkAndHolds(Shape{1, 16, 3, 60, 104}));
  EXPECT_THAT(LatentShapeOfVideo(config, 1, 8, 8),
              IsOkAndHolds(Shape{1, 16, 1, 1, 1}));
  EXPECT_THAT(LatentShapeOfVideo(config, 10, 480, 832),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 + k * 4, such as 9")));
  EXPECT_THAT(LatentShapeOfVideo(config, 9, 481, 832),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("multiples of 8")));
  EXPECT_FALSE(LatentShapeOfVideo(config, 0, 8, 8).ok());
  EXPECT_FALSE(LatentShapeOfVideo(config, 9, 1 << 30, 1 << 30).ok());
}

TEST(ParseLatentShape, TakesFiveSizes) {
  const WanVaeConfig config;
  EXPECT_THAT(ParseLatentShape(config, "1x16x3x60x104"),
              IsOkAndHolds(Shape{1, 16, 3, 60, 104}));
  EXPECT_THAT(ParseLatentShape(config, "2,16,3,4,6"),
              IsOkAndHolds(Shape{2, 16, 3, 4, 6}));
  for (const std::string text :
       {"", "1x16x3x60", "1x15x3x60x104", "1x16x0x60x104", "1x16x-3x60x104",
        "1x16x3x60x104x1", "axbxcxdxe", "1x16x3x60x99999999999999999999",
        "1x16x4294967296x4294967296x4294967296"}) {
    EXPECT_THAT(
        ParseLatentShape(config, text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected")))
        << text;
  }
}

TEST(SeededLatents, HaveMeanZeroAndVarianceOne) {
  const FloatTensor a = SeededLatents({1, 16, 3, 16, 24}, 0);
  double sum = 0;
  double squares = 0;
  for (const float value : a.values) {
    sum += value;
    squares += value * value;
  }
  const auto n = static_cast<double>(a.values.size());
  EXPECT_NEAR(sum / n, 0, 0.03);
  EXPECT_NEAR(squares / n, 1, 0.03);
}

TEST(SeededLatents, DependOnTheSeedAlone) {
  const Shape shape = {1, 16, 1, 2, 2};
  EXPECT_EQ(SeededLatents(shape, 7).values, SeededLatents(shape, 7).values);
  EXPECT_NE(SeededLatents(shape, 7).values, SeededLatents(shape, 8).values);
}

TEST(ReadLatents, ChecksTheShape) {
  TempDir dir;
  const std::string path = dir.File("latent.safetensors");
  const FloatTensor latents = SeededLatents({1, 16, 1, 2, 2}, 0);
  ASSERT_THAT(WriteTensorFile(path, "latent", latents), IsOk());
  ASSERT_OK_AND_ASSIGN(const FloatTensor read,
                       ReadLatents(WanVaeConfig(), path));
  EXPECT_EQ(read.values, latents.values);
  WanVaeConfig other;
  other.z_dim = 48;
  EXPECT_THAT(ReadLatents(other, path),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("48")));
}

}  // namespace
}  // namespace firstframe
