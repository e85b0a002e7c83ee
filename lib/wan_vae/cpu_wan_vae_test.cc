#include "lib/wan_vae/cpu_wan_vae.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tensor/shape.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/cpu_test_model.h"
#include "lib/wan_vae/testdata.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::kCpuParity;
using ::firstframe::testing::LoadSyntheticModel;
using ::firstframe::testing::ReadGoldenTensors;
using ::firstframe::testing::RelativeL2;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::SyntheticParameter;
using ::testing::HasSubstr;

TEST(CpuWanVae, ProgressRisesToOneAlsoAcrossTiles) {
  const auto golden = ReadGoldenTensors("small_tiled_golden.safetensors");
  const auto model = LoadSyntheticModel("tiny");
  for (const bool tiled : {false, true}) {
    std::vector<double> shares;
    RunOptions options = {
        .progress = [&](double share) { shares.push_back(share); }};
    if (tiled) options.tiling = TilingOptions{64, 64, 48, 48};
    ASSERT_THAT(model->Decode(ViewOf(golden.at("latent")), options), IsOk());
    ASSERT_FALSE(shares.empty());
    EXPECT_EQ(shares.front(), 0.0);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_GT(shares.back(), 0.95);
    EXPECT_LE(shares.back(), 1.0);
  }
}

TEST(CpuWanVae, CancellationEndsTheRunAndLeavesTheModelUsable) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSyntheticModel("tiny");
  for (int after : {0, 1, 7, 40}) {
    int asked = 0;
    const RunOptions options = {
        .is_cancelled = [&] { return asked++ == after; }};
    EXPECT_THAT(model->Decode(ViewOf(golden.at("latent")), options),
                StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
    EXPECT_EQ(asked, after + 1);
  }
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_LE(RelativeL2(sample, golden.at("sample")), kCpuParity);
}

TEST(CpuWanVae, RepeatsItsBitsAndItsMemory) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSyntheticModel("tiny");
  ASSERT_OK_AND_ASSIGN(const FloatTensor first,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  const int64_t workspace = model->WorkspaceBytes();
  const int64_t flops = model->LastRunFlops();
  EXPECT_GT(workspace, 0);
  EXPECT_GT(flops, 0);
  EXPECT_GE(model->ParameterBytes(), 13861 * 4);
  ASSERT_OK_AND_ASSIGN(const FloatTensor second,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(model->WorkspaceBytes(), workspace);
  EXPECT_EQ(model->LastRunFlops(), flops);
}

TEST(CpuWanVae, RefusesWhatItCannotDecode) {
  const auto model = LoadSyntheticModel("tiny");
  const std::vector<float> values(16 * 4);
  const auto view = [&](Shape shape) {
    return TensorView{
        .dtype = DType::kF32,
        .shape = std::move(shape),
        .bytes = {reinterpret_cast<const std::byte*>(values.data()),
                  values.size() * sizeof(float)}};
  };
  const auto decode = [&](const TensorView& latents,
                          const RunOptions& options = {}) {
    return model->Decode(latents, options).status();
  };
  const auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(decode(view({1, 16, 1, 2, 2})), IsOk());
  EXPECT_THAT(decode(view({1, 4, 4, 2, 2})),
              StatusIs(kInvalid, HasSubstr("16 channels")));
  EXPECT_THAT(decode(view({16, 2, 2})),
              StatusIs(kInvalid, HasSubstr("[16, 2, 2]")));
  EXPECT_THAT(decode(view({1, 16, 0, 2, 2})),
              StatusIs(kInvalid, HasSubstr("[1, 16, 0, 2, 2]")));
  EXPECT_THAT(decode(view({1, 16, -1, 2, 2})),
              StatusIs(kInvalid, HasSubstr("-1")));
  EXPECT_THAT(decode(view({1, 16, 1, 2, int64_t{1} << 60})),
              StatusIs(kInvalid, HasSubstr("shape")));
  EXPECT_THAT(decode(view({1, 16, 1, 2, 3})),
              StatusIs(kInvalid, HasSubstr("256 bytes, expected 384")));
  TensorView half = view({1, 16, 2, 2, 2});
  half.dtype = DType::kF16;
  EXPECT_THAT(decode(half), StatusIs(kInvalid, HasSubstr("F16, expected F32")));
  for (const TilingOptions& tiling :
       {TilingOptions{0, 64, 0, 48}, TilingOptions{64, 64, 48, 96},
        TilingOptions{60, 64, 48, 48}, TilingOptions{64, 64, 48, -48}}) {
    EXPECT_THAT(decode(view({1, 16, 1, 2, 2}), {.tiling = tiling}),
                StatusIs(kInvalid, HasSubstr("expected multiples of 8")));
  }
}

TEST(CpuWanVae, RefusesVideosThatItsEncoderWouldCut) {
  const auto model = LoadSyntheticModel("tiny");
  FloatTensor video = {.shape = {1, 3, 4, 16, 16}};
  video.values.resize(*CheckedNumElements(video.shape));
  EXPECT_THAT(
      model->Encode(ViewOf(video), {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 + 4k frames")));
  video.shape = {1, 3, 1, 64, 15};
  video.values.resize(*CheckedNumElements(video.shape));
  EXPECT_THAT(model->Encode(ViewOf(video), {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("multiples of 8")));
}

TEST(CpuWanVae, StepsOutOfOrderAreErrors) {
  ASSERT_OK_AND_ASSIGN(const auto model,
                       BuildCpuWanVae(*WanVaePreset("tiny"), {}));
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const FloatTensor first = SyntheticParameter(model->tree().parameters[0]);
  const auto kPrecondition = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(model->Decode(ViewOf(golden.at("latent")), {}),
              StatusIs(kPrecondition, HasSubstr("not loaded")));
  EXPECT_THAT(model->AssignParameter(0, ViewOf(first)),
              StatusIs(kPrecondition, HasSubstr("not allocated")));
  ASSERT_THAT(model->AllocateParameters(), IsOk());
  EXPECT_THAT(model->Finalize(),
              StatusIs(kPrecondition, HasSubstr("encoder.conv_in.weight")));
  EXPECT_THAT(
      model->AssignParameter(1, ViewOf(first)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected [3]")));
}

TEST(CpuWanVae, NanInALatentReachesTheSample) {
  auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSyntheticModel("tiny");
  golden.at("latent").values[0] = std::nanf("");
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_TRUE(std::any_of(sample.values.begin(), sample.values.end(),
                          [](float value) { return std::isnan(value); }));
}

TEST(LatentStatistics, AreInverses) {
  const WanVaeConfig config;
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  FloatTensor latents = golden.at("latent");
  DenormalizeLatents(config, latents);
  const float first = golden.at("latent").values[0];
  EXPECT_FLOAT_EQ(latents.values[0], first * 2.8184f - 0.7571f);
  NormalizeLatents(config, latents);
  EXPECT_LE(RelativeL2(latents, golden.at("latent")), 1e-6);
}

}  // namespace
}  // namespace firstframe
