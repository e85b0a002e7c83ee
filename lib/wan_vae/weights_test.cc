#include "lib/wan_vae/weights.h"

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MatchParametersTest : public ::testing::Test {
 protected:
  std::vector<NamedTensor> DiffusersTensors() const {
    std::vector<NamedTensor> tensors;
    for (const ParameterSpec& spec : tree_.parameters) {
      tensors.push_back(
          {spec.name,
           {.dtype = DType::kF32, .shape = spec.shape, .bytes = {}}});
    }
    return tensors;
  }

  absl::StatusOr<std::vector<int>> Match(
      const std::vector<NamedTensor>& tensors) {
    return MatchParameters(config_, tree_, tensors);
  }

  const WanVaeConfig config_;
  const ModuleTree tree_ = BuildModuleTree(config_);
};

TEST_F(MatchParametersTest, FindsEachWhateverTheOrder) {
  std::vector<NamedTensor> tensors = DiffusersTensors();
  std::reverse(tensors.begin(), tensors.end());
  ASSERT_OK_AND_ASSIGN(const std::vector<int> position, Match(tensors));
  ASSERT_EQ(position.size(), tensors.size());
  for (size_t i = 0; i < position.size(); ++i) {
    EXPECT_EQ(position[i], static_cast<int>(position.size() - 1 - i));
  }
}

TEST_F(MatchParametersTest, OriginalNamesAreKnown) {
  const std::pair<const char*, const char*> cases[] = {
      {"quant_conv.weight", "conv1.weight"},
      {"post_quant_conv.bias", "conv2.bias"},
      {"encoder.conv_in.weight", "encoder.conv1.weight"},
      {"encoder.down_blocks.0.norm1.gamma",
       "encoder.downsamples.0.residual.0.gamma"},
      {"encoder.down_blocks.3.conv_shortcut.bias",
       "encoder.downsamples.3.shortcut.bias"},
      {"encoder.down_blocks.5.resample.1.weight",
       "encoder.downsamples.5.resample.1.weight"},
      {"encoder.down_blocks.5.time_conv.weight",
       "encoder.downsamples.5.time_conv.weight"},
      {"encoder.down_blocks.10.conv2.weight",
       "encoder.downsamples.10.residual.6.weight"},
      {"encoder.mid_block.attentions.0.to_qkv.weight",
       "encoder.middle.1.to_qkv.weight"},
      {"encoder.norm_out.gamma", "encoder.head.0.gamma"},
      {"encoder.conv_out.weight", "encoder.head.2.weight"},
      {"decoder.conv_in.bias", "decoder.conv1.bias"},
      {"decoder.mid_block.resnets.0.conv1.weight",
       "decoder.middle.0.residual.2.weight"},
      {"decoder.mid_block.resnets.1.norm2.gamma",
       "decoder.middle.2.residual.3.gamma"},
      {"decoder.mid_block.attentions.0.norm.gamma",
       "decoder.middle.1.norm.gamma"},
      {"decoder.up_blocks.0.resnets.2.conv2.bias",
       "decoder.upsamples.2.residual.6.bias"},
      {"decoder.up_blocks.0.upsamplers.0.time_conv.bias",
       "decoder.upsamples.3.time_conv.bias"},
      {"decoder.up_blocks.1.resnets.0.conv_shortcut.weight",
       "decoder.upsamples.4.shortcut.weight"},
      {"decoder.up_blocks.2.upsamplers.0.resample.1.weight",
       "decoder.upsamples.11.resample.1.weight"},
      {"decoder.up_blocks.3.resnets.2.conv1.weight",
       "decoder.upsamples.14.residual.2.weight"},
      {"decoder.norm_out.gamma", "decoder.head.0.gamma"},
  };
  std::set<std::string> known;
  for (const ParameterSpec& spec : tree_.parameters) known.insert(spec.name);
  for (const auto& [diffusers, original] : cases) {
    EXPECT_TRUE(known.count(diffusers)) << diffusers;
    EXPECT_EQ(OriginalName(diffusers, config_), original);
  }
}

TEST_F(MatchParametersTest, OriginalCheckpointMatches) {
  std::vector<NamedTensor> tensors = DiffusersTensors();
  std::set<std::string> names;
  for (NamedTensor& tensor : tensors) {
    tensor.name = OriginalName(tensor.name, config_);
    EXPECT_EQ(tensor.name.find("_block"), std::string::npos) << tensor.name;
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<int> position, Match(tensors));
  for (size_t i = 0; i < position.size(); ++i) {
    EXPECT_EQ(position[i], static_cast<int>(i));
  }
}

TEST_F(MatchParametersTest, ReportsEveryFaultAtOnce) {
  std::vector<NamedTensor> tensors = DiffusersTensors();
  tensors[0].name = "encoder.conv_inn.weight";  // unexpected, missing
  tensors[1].view.shape = {97};                 // mis-shaped
  tensors[2].view.dtype = DType::kI8;           // not a float
  tensors.push_back(
      {"lora.up", {.dtype = DType::kF32, .shape = {4, 4}, .bytes = {}}});
  tensors.push_back(
      {"conv1.bias", {.dtype = DType::kF32, .shape = {32}, .bytes = {}}});
  EXPECT_THAT(
      Match(tensors),
      StatusIs(
          absl::StatusCode::kInvalidArgument,
          AllOf(HasSubstr("1 missing: encoder.conv_in.weight [96, 3, 3, 3, 3]"),
                HasSubstr("2 unexpected: encoder.conv_inn.weight [96, 3, 3, 3, "
                          "3], lora.up [4, 4]"),
                HasSubstr(
                    "1 mis-shaped: encoder.conv_in.bias [97] instead of [96]"),
                HasSubstr("1 given twice: conv1.bias (also quant_conv.bias)"),
                HasSubstr("not F64, F32, F16 or BF16: "
                          "encoder.down_blocks.0.norm1.gamma I8"))));
}

TEST_F(MatchParametersTest, NothingAtAllNamesEverything) {
  const absl::Status status = Match({}).status();
  for (const ParameterSpec& spec : tree_.parameters) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(spec.name));
  }
}

}  // namespace
}  // namespace firstframe
