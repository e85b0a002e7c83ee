// The CPU backend against the float64 goldens. BUILD runs it once more with
// oneDNN kept to AVX2, whose kernels sum in another way.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/cpu_test_model.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/testdata.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::kCpuParity;
using ::firstframe::testing::LoadSyntheticModel;
using ::firstframe::testing::ReadGoldenTensors;
using ::firstframe::testing::RelativeL2;

double DecodeError(const char* preset, const char* file,
                   const RunOptions& options = {}, int threads = 1) {
  const auto golden = ReadGoldenTensors(file);
  const auto model = LoadSyntheticModel(preset, threads);
  const auto sample = model->Decode(ViewOf(golden.at("latent")), options);
  EXPECT_THAT(sample, IsOk());
  const double error = RelativeL2(*sample, golden.at("sample"));
  ::testing::Test::RecordProperty("relative_l2", absl::StrCat(error));
  return error;
}

TEST(CpuWanVae, TinyDecodes) {
  EXPECT_LE(DecodeError("tiny", "tiny_golden.safetensors"), kCpuParity);
}

TEST(CpuWanVae, SmallBatchOfTwoDecodes) {
  for (const int threads : {1, 2}) {
    EXPECT_LE(DecodeError("small", "small_golden.safetensors", {}, threads),
              kCpuParity);
  }
}

TEST(CpuWanVae, TiledDecodes) {
  const RunOptions options = {.tiling = TilingOptions{64, 64, 48, 48}};
  EXPECT_LE(DecodeError("small", "small_tiled_golden.safetensors", options),
            kCpuParity);
  // The golden differs from an untiled decode, so tiles were in fact blended.
  EXPECT_GT(DecodeError("small", "small_tiled_golden.safetensors"),
            100 * kCpuParity);
}

TEST(CpuWanVae, PublishedSizeDecodes) {
  EXPECT_LE(DecodeError("wan21", "wan21_golden.safetensors"), kCpuParity);
}

class EncodeOf : public ::testing::TestWithParam<const char*> {};

TEST_P(EncodeOf, MeanAndLogvarMatch) {
  const auto golden =
      ReadGoldenTensors(std::string(GetParam()) + "_golden.safetensors");
  const auto model = LoadSyntheticModel(GetParam());
  ASSERT_OK_AND_ASSIGN(const EncodeResult result,
                       model->Encode(ViewOf(golden.at("encode_input")), {}));
  EXPECT_LE(RelativeL2(result.mean, golden.at("encode_mean")), kCpuParity);
  EXPECT_LE(RelativeL2(result.logvar, golden.at("encode_logvar")), kCpuParity);
  // Decoding still works, and encoding again gives the same bits.
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_LE(RelativeL2(sample, golden.at("sample")), kCpuParity);
  ASSERT_OK_AND_ASSIGN(const EncodeResult again,
                       model->Encode(ViewOf(golden.at("encode_input")), {}));
  EXPECT_EQ(again.mean.values, result.mean.values);
}

INSTANTIATE_TEST_SUITE_P(All, EncodeOf, ::testing::Values("tiny", "small"));

TEST(CpuWanVae, TiledEncodeOfOneTileIsTheUntiledEncode) {
  const auto golden = ReadGoldenTensors("small_golden.safetensors");
  const auto model = LoadSyntheticModel("small");
  const TensorView input = ViewOf(golden.at("encode_input"));
  // 32 x 48 in tiles of 32 x 32: the left one is the untiled encode of its
  // crop.
  ASSERT_OK_AND_ASSIGN(
      const EncodeResult tiled,
      model->Encode(input, {.tiling = TilingOptions{32, 32, 32, 16}}));
  EXPECT_EQ(tiled.mean.shape, golden.at("encode_mean").shape);
  const FloatTensor crop =
      CropSpatially(golden.at("encode_input"), 0, 0, 32, 32);
  ASSERT_OK_AND_ASSIGN(const EncodeResult left,
                       model->Encode(ViewOf(crop), {}));
  EXPECT_LE(RelativeL2(CropSpatially(tiled.mean, 0, 0, 4, 2),
                       CropSpatially(left.mean, 0, 0, 4, 2)),
            kCpuParity);
}

}  // namespace
}  // namespace firstframe
