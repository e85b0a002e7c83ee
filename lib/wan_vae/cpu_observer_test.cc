// What an observer of the CPU backend sees.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/tensor/shape.h"
#include "lib/testing/status_matchers.h"
#include "lib/wan_vae/cpu_test_model.h"
#include "lib/wan_vae/cpu_wan_vae.h"
#include "lib/wan_vae/observer.h"
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
using ::testing::HasSubstr;

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
  const auto model = LoadSyntheticModel("small");
  Recorder recorder;
  ASSERT_OK_AND_ASSIGN(const FloatTensor sample,
                       model->Decode(ViewOf(FirstItem(golden.at("latent"))),
                                     {.observer = &recorder}));
  EXPECT_LE(RelativeL2(sample, FirstItem(golden.at("sample"))), kCpuParity);
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
  const auto model = LoadSyntheticModel("tiny");
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
  const auto model = LoadSyntheticModel("tiny");
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
  const auto model = LoadSyntheticModel("tiny");
  Failing observer;
  EXPECT_THAT(
      model->Decode(ViewOf(golden.at("latent")), {.observer = &observer}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("post_quant_conv")));
}

}  // namespace
}  // namespace firstframe
