#include "lib/wan_vae/cpu_wan_vae.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tensor/shape.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/synthetic.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadGoldenTensors;
using ::firstframe::testing::RelativeL2;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// Float64 is the truth; PyTorch's own float32 is 1.3e-6 away from it.
constexpr double kParity = 3e-6;

FloatTensor Synthetic(const ParameterSpec& spec) {
  FloatTensor tensor = {.shape = spec.shape};
  tensor.values.resize(*CheckedNumElements(spec.shape));
  FillSynthetic(spec.name, spec.shape, 0, absl::MakeSpan(tensor.values));
  return tensor;
}

std::unique_ptr<CpuWanVae> LoadSynthetic(const char* preset) {
  auto model = *BuildCpuWanVae(*WanVaePreset(preset), {});
  EXPECT_THAT(model->AllocateParameters(), IsOk());
  const auto& parameters = model->tree().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    EXPECT_THAT(model->AssignParameter(static_cast<int>(i),
                                       ViewOf(Synthetic(parameters[i]))),
                IsOk());
  }
  EXPECT_THAT(model->Finalize(), IsOk());
  return model;
}

double DecodeError(const char* preset, const char* file,
                   const RunOptions& options = {}) {
  const auto golden = ReadGoldenTensors(file);
  const auto model = LoadSynthetic(preset);
  const auto sample = model->Decode(ViewOf(golden.at("latent")), options);
  EXPECT_THAT(sample, IsOk());
  const double error = RelativeL2(*sample, golden.at("sample"));
  ::testing::Test::RecordProperty("relative_l2", absl::StrCat(error));
  return error;
}

TEST(CpuWanVae, TinyDecodes) {
  EXPECT_LE(DecodeError("tiny", "tiny_golden.safetensors"), kParity);
}

TEST(CpuWanVae, SmallBatchOfTwoDecodes) {
  EXPECT_LE(DecodeError("small", "small_golden.safetensors"), kParity);
}

TEST(CpuWanVae, TiledDecodes) {
  const RunOptions options = {.tiling = TilingOptions{64, 64, 48, 48}};
  EXPECT_LE(DecodeError("small", "small_tiled_golden.safetensors", options),
            kParity);
  // The golden differs from an untiled decode, so tiles were in fact blended.
  EXPECT_GT(DecodeError("small", "small_tiled_golden.safetensors"),
            100 * kParity);
}

TEST(CpuWanVae, PublishedSizeDecodes) {
  EXPECT_LE(DecodeError("wan21", "wan21_golden.safetensors"), kParity);
}

class EncodeOf : public ::testing::TestWithParam<const char*> {};

TEST_P(EncodeOf, MeanAndLogvarMatch) {
  const auto golden =
      ReadGoldenTensors(std::string(GetParam()) + "_golden.safetensors");
  const auto model = LoadSynthetic(GetParam());
  ASSERT_OK_AND_ASSIGN(const EncodeResult result,
                       model->Encode(ViewOf(golden.at("encode_input")), {}));
  EXPECT_LE(RelativeL2(result.mean, golden.at("encode_mean")), kParity);
  EXPECT_LE(RelativeL2(result.logvar, golden.at("encode_logvar")), kParity);
  // Decoding still works, and encoding again gives the same bits.
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_LE(RelativeL2(sample, golden.at("sample")), kParity);
  ASSERT_OK_AND_ASSIGN(const EncodeResult again,
                       model->Encode(ViewOf(golden.at("encode_input")), {}));
  EXPECT_EQ(again.mean.values, result.mean.values);
}

INSTANTIATE_TEST_SUITE_P(All, EncodeOf, ::testing::Values("tiny", "small"));

// Keeps what it is told, in PyTorch's layout.
class Recorder : public ActivationObserver {
 public:
  struct Output {
    std::string module;
    Shape shape;
    double abs_mean = 0, sum = 0, min = 0, max = 0;
  };

  absl::Status OnOutput(const Module& module,
                        const ObservedTensor& output) override {
    Output record = {.module = module.name, .shape = output.shape};
    EXPECT_EQ(output.dtype, DType::kF32);
    EXPECT_FALSE(output.on_device);
    const float* values = static_cast<const float*>(output.data);
    const int64_t count = *CheckedNumElements(output.shape);
    record.min = record.max = values[0];
    for (int64_t i = 0; i < count; ++i) {
      record.sum += values[i];
      record.abs_mean += std::abs(values[i]) / static_cast<double>(count);
      record.min = std::min<double>(record.min, values[i]);
      record.max = std::max<double>(record.max, values[i]);
    }
    outputs.push_back(record);
    return absl::OkStatus();
  }

  std::vector<Output> outputs;
};

FloatTensor FirstItem(const FloatTensor& batch) {
  FloatTensor item = batch;
  item.shape[0] = 1;
  item.values.resize(batch.values.size() / batch.shape[0]);
  return item;
}

TEST(CpuWanVaeObserver, SeesWhatPyTorchsHooksSee) {
  const auto golden_outputs = testing::ReadGoldenOutputs();
  const auto golden = ReadGoldenTensors("small_golden.safetensors");
  const auto model = LoadSynthetic("small");
  Recorder recorder;
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(FirstItem(golden.at("latent"))),
                                     {.observer = &recorder}));
  EXPECT_LE(RelativeL2(sample, FirstItem(golden.at("sample"))), kParity);
  ASSERT_EQ(recorder.outputs.size(), golden_outputs.size());
  for (size_t i = 0; i < golden_outputs.size(); ++i) {
    const auto& found = recorder.outputs[i];
    const auto& expected = golden_outputs[i];
    ASSERT_EQ(found.module, expected.module) << "output " << i;
    ASSERT_EQ(found.shape, expected.shape) << expected.module;
    const double tolerance = 2e-5 * expected.abs_mean;
    EXPECT_NEAR(found.abs_mean, expected.abs_mean, tolerance)
        << expected.module;
    EXPECT_NEAR(found.min, expected.min, 1e-5) << expected.module;
    EXPECT_NEAR(found.max, expected.max, 1e-5) << expected.module;
    // A sum of values that cancel: judged by the mean of their sizes.
    const double count =
        static_cast<double>(*CheckedNumElements(expected.shape));
    EXPECT_NEAR(found.sum, expected.sum, tolerance * count) << expected.module;
  }
}

// Wants the names it was given alone.
class Selective : public Recorder {
 public:
  explicit Selective(std::set<std::string> names) : names_(std::move(names)) {}
  bool Wants(const Module& module) override {
    return names_.count(module.name) > 0;
  }

 private:
  const std::set<std::string> names_;
};

TEST(CpuWanVaeObserver, IsToldOnlyWhatItWants) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSynthetic("tiny");
  Selective observer({"decoder.mid_block.attentions.0", "decoder"});
  ASSERT_THAT(
      model->Decode(ViewOf(golden.at("latent")), {.observer = &observer}),
      IsOk());
  ASSERT_EQ(observer.outputs.size(), 6u);  // two modules, three chunks
  EXPECT_EQ(observer.outputs[0].module, "decoder.mid_block.attentions.0");
  EXPECT_EQ(observer.outputs[1].module, "decoder");
  EXPECT_EQ(observer.outputs[1].shape, (Shape{1, 3, 1, 16, 16}));
  EXPECT_EQ(observer.outputs[5].shape, (Shape{1, 3, 4, 16, 16}));
}

TEST(CpuWanVaeObserver, SeesEveryEncoderModuleAndEndsWithQuantConv) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSynthetic("tiny");
  Recorder recorder;
  ASSERT_OK_AND_ASSIGN(const EncodeResult result,
                       model->Encode(ViewOf(golden.at("encode_input")),
                                     {.observer = &recorder}));
  // Steps that stand alone round once more, and this encoder's norms of three
  // channels amplify it.
  EXPECT_LE(RelativeL2(result.mean, golden.at("encode_mean")), 1e-4);
  std::set<std::string> seen;
  for (const auto& output : recorder.outputs) seen.insert(output.module);
  for (const Module& module : model->tree().modules) {
    if (module.name.rfind("encoder", 0) != 0) continue;
    EXPECT_EQ(seen.count(module.name),
              module.kind == ModuleKind::kList ? 0u : 1u)
        << module.name;
  }
  EXPECT_EQ(recorder.outputs.back().module, "quant_conv");
  EXPECT_EQ(recorder.outputs.back().shape, (Shape{1, 32, 2, 2, 2}));
  // ZeroPad2d adds one row and one column.
  for (const auto& output : recorder.outputs) {
    if (output.module != "encoder.down_blocks.1.resample.0") continue;
    EXPECT_EQ(output.shape[2], 17);
    EXPECT_EQ(output.shape[3], 17);
  }
}

class Failing : public ActivationObserver {
 public:
  absl::Status OnOutput(const Module& module, const ObservedTensor&) override {
    return absl::DataLossError(module.name);
  }
};

TEST(CpuWanVaeObserver, ItsErrorEndsTheRun) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSynthetic("tiny");
  Failing observer;
  EXPECT_THAT(
      model->Decode(ViewOf(golden.at("latent")), {.observer = &observer}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("post_quant_conv")));
}

TEST(CpuWanVae, ProgressRisesToOneAlsoAcrossTiles) {
  const auto golden = ReadGoldenTensors("small_tiled_golden.safetensors");
  const auto model = LoadSynthetic("tiny");
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
  const auto model = LoadSynthetic("tiny");
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
  EXPECT_LE(RelativeL2(sample, golden.at("sample")), kParity);
}

TEST(CpuWanVae, RepeatsItsBitsAndItsMemory) {
  const auto golden = ReadGoldenTensors("tiny_golden.safetensors");
  const auto model = LoadSynthetic("tiny");
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
  const auto model = LoadSynthetic("tiny");
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
  const auto model = LoadSynthetic("tiny");
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
  const FloatTensor first = Synthetic(model->tree().parameters[0]);
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
  const auto model = LoadSynthetic("tiny");
  golden.at("latent").values[0] = std::nanf("");
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(golden.at("latent")), {}));
  EXPECT_TRUE(std::any_of(sample.values.begin(), sample.values.end(),
                          [](float value) { return std::isnan(value); }));
}

TEST(CpuWanVae, TiledEncodeOfOneTileIsTheUntiledEncode) {
  const auto golden = ReadGoldenTensors("small_golden.safetensors");
  const auto model = LoadSynthetic("small");
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
            kParity);
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
