#include "lib/wan_vae/load_weights.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/writer.h"
#include "lib/tensor/convert.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/synthetic_checkpoint.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadGoldenTensors;
using ::firstframe::testing::RelativeL2;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

double DecodeErrorOf(const std::string& path) {
  const auto component = FindVaeComponent(path);
  EXPECT_THAT(component, IsOk());
  const auto model = *BuildCpuWanVae(component->config, {});
  EXPECT_THAT(LoadVaeWeights(component->checkpoint, *model), IsOk());
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto sample = model->Decode(ViewOf(golden.at("latent")), {});
  EXPECT_THAT(sample, IsOk());
  return RelativeL2(*sample, golden.at("sample"));
}

TEST(LoadVaeWeights, LoadsWhatDiffusersWrote) {
  EXPECT_LE(DecodeErrorOf(testing::VaeTestdata("tiny_vae")), 3e-6);
  EXPECT_LE(DecodeErrorOf(testing::VaeTestdata(
                "tiny_vae/diffusion_pytorch_model.safetensors")),
            3e-6);
}

TEST(LoadVaeWeights, LoadsAPipelineFolder) {
  const testing::TempDir dir;
  ASSERT_THAT(WriteSyntheticVae(dir.File("pipeline/vae"), *WanVaePreset("tiny"),
                                false, {}),
              IsOk());
  EXPECT_LE(DecodeErrorOf(dir.File("pipeline")), 3e-6);
}

TEST(LoadVaeWeights, LoadsShardsAndOriginalNames) {
  const testing::TempDir dir;
  ASSERT_THAT(WriteSyntheticVae(dir.File("v"), *WanVaePreset("tiny"),
                                /*original_names=*/true, {.num_shards = 3}),
              IsOk());
  EXPECT_LE(DecodeErrorOf(dir.File("v")), 3e-6);
}

// A file of another type gives the decode of its rounded values, bit for bit.
TEST(LoadVaeWeights, ConvertsOtherTypes) {
  const WanVaeConfig config = *WanVaePreset("tiny");
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16}) {
    const testing::TempDir dir;
    ASSERT_THAT(
        WriteSyntheticVae(dir.File("v"), config, false, {.dtype = dtype}),
        IsOk());
    const auto loaded = *BuildCpuWanVae(config, {});
    ASSERT_THAT(LoadVaeWeights(dir.File("v"), *loaded), IsOk());

    const auto rounded = *BuildCpuWanVae(config, {});
    ASSERT_OK_AND_ASSIGN(VaeWeights weights,
                         ReadVaeWeights(testing::VaeTestdata("tiny_vae"),
                                        config, rounded->tree()));
    std::vector<HostTensor> narrowed;
    for (TensorView& value : weights.values) {
      ASSERT_OK_AND_ASSIGN(const HostTensor narrow,
                           ConvertTensor(value, dtype));
      ASSERT_OK_AND_ASSIGN(HostTensor wide,
                           ConvertTensor(narrow.view(), DType::kF32));
      narrowed.push_back(std::move(wide));
      value = narrowed.back().view();
    }
    ASSERT_THAT(rounded->AllocateParameters(), IsOk());
    ASSERT_THAT(AssignVaeWeights(weights, *rounded), IsOk());
    ASSERT_THAT(rounded->Finalize(), IsOk());

    ASSERT_OK_AND_ASSIGN(const FloatTensor found,
                         loaded->Decode(ViewOf(golden.at("latent")), {}));
    ASSERT_OK_AND_ASSIGN(const FloatTensor expected,
                         rounded->Decode(ViewOf(golden.at("latent")), {}));
    EXPECT_EQ(found.values, expected.values) << DTypeName(dtype);
    const bool is_exact = dtype == DType::kF64;
    EXPECT_EQ(RelativeL2(found, golden.at("sample")) <= 3e-6, is_exact)
        << DTypeName(dtype);
  }
}

TEST(LoadVaeWeights, NamesEveryFaultAndTheFile) {
  const testing::TempDir dir;
  const std::vector<float> values(4, 1.0f);
  const TensorView view = {
      .dtype = DType::kF32,
      .shape = {4},
      .bytes = absl::MakeConstSpan(
          reinterpret_cast<const std::byte*>(values.data()), 16)};
  const std::string path = dir.File("bad.safetensors");
  ASSERT_THAT(WriteSafetensors(path, {{"conv1.bias", view}, {"extra", view}}),
              IsOk());
  ASSERT_OK_AND_ASSIGN(const VaeComponent component, FindVaeComponent(path));
  EXPECT_EQ(component.config, WanVaeConfig());
  const auto model = *BuildCpuWanVae(component.config, {});
  EXPECT_THAT(
      LoadVaeWeights(path, *model),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr(path), HasSubstr("193 missing"),
                HasSubstr("1 unexpected: extra [4]"),
                HasSubstr("1 mis-shaped: conv1.bias [4] instead of [32]"))));
}

TEST(FindVaeComponent, SaysWhatItLookedFor) {
  const testing::TempDir dir;
  EXPECT_THAT(
      FindVaeComponent(dir.File("absent")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent: no such file")));
  EXPECT_THAT(
      FindVaeComponent(dir.path()),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("no vae/config.json")));
  dir.Write("config.json", "{\"patch_size\": 2}");
  EXPECT_THAT(
      FindVaeComponent(dir.path()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("/config.json: "), HasSubstr("patch_size"))));
}

TEST(WriteSyntheticVae, EqualsWhatDiffusersWrote) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      const SyntheticResult result,
      WriteSyntheticVae(dir.File("v"), *WanVaePreset("tiny"), false, {}));
  EXPECT_EQ(result.size_bytes, 13861u * 4);
  EXPECT_EQ(result.paths.size(), 2u);
  const auto written = ReadVaeWeights(dir.File("v"), *WanVaePreset("tiny"),
                                      BuildModuleTree(*WanVaePreset("tiny")));
  const auto golden =
      ReadVaeWeights(testing::VaeTestdata("tiny_vae"), *WanVaePreset("tiny"),
                     BuildModuleTree(*WanVaePreset("tiny")));
  ASSERT_THAT(written, IsOk());
  ASSERT_THAT(golden, IsOk());
  ASSERT_EQ(written->values.size(), golden->values.size());
  for (size_t i = 0; i < written->values.size(); ++i) {
    EXPECT_EQ(written->values[i].bytes, golden->values[i].bytes);
  }
}

TEST(WriteSyntheticVae, CancelledLeavesNoCheckpoint) {
  const testing::TempDir dir;
  int asked = 0;
  EXPECT_THAT(WriteSyntheticVae(dir.File("v"), *WanVaePreset("tiny"), false,
                                {.is_cancelled = [&] { return ++asked > 5; }}),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_THAT(FindVaeComponent(dir.File("v")), Not(IsOk()));
}

TEST(PlanUniformTensors, AddsUpExactly) {
  ASSERT_OK_AND_ASSIGN(const auto specs,
                       PlanUniformTensors(7, 4 * 1000 + 3, DType::kF32));
  int64_t total = 0;
  for (const TensorSpec& spec : specs) total += *CheckedNumElements(spec.shape);
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(specs.size(), 7u);
  EXPECT_EQ(specs.back().name, "layers.6.weight");
  ASSERT_OK_AND_ASSIGN(const auto even,
                       PlanUniformTensors(2, 2 * 2 * 256, DType::kBF16));
  EXPECT_EQ(even[0].shape, (Shape{2, 128}));
  EXPECT_THAT(PlanUniformTensors(5, 16, DType::kF32),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("5 tensors in 16 bytes")));
  EXPECT_THAT(
      PlanUniformTensors(0, 16, DType::kF32),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 tensors")));
}

}  // namespace
}  // namespace firstframe
