// Every cost model against what torch counted: no difference at all.

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/flops/architecture_reader.h"
#include "lib/flops/golden_layouts.h"
#include "lib/flops/known_models.h"
#include "lib/flops/run_cost.h"
#include "lib/flops/text_encoder_cost.h"
#include "lib/flops/transformer_model.h"
#include "lib/flops/wan_vae_cost.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

namespace dom = simdjson::dom;
using ::firstframe::testing::IsOk;
using ::firstframe::testing::LoadFlopsGolden;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

int64_t IntOr(dom::element entry, std::string_view key, int64_t otherwise) {
  int64_t value;
  return entry[key].get(value) == simdjson::SUCCESS ? value : otherwise;
}

std::vector<int64_t> Ints(dom::element array) {
  std::vector<int64_t> values;
  for (const dom::element value : array.get_array()) values.push_back(value);
  return values;
}

// torch files a linear layer without a bias under mm instead of addmm.
void ExpectEqualsTorch(const ForwardCost& cost, dom::element by_op) {
  EXPECT_EQ(cost.FlopsOf(AtenOperator::kAddmm),
            IntOr(by_op, "aten.addmm", 0) + IntOr(by_op, "aten.mm", 0));
  EXPECT_EQ(cost.FlopsOf(AtenOperator::kBmm), IntOr(by_op, "aten.bmm", 0));
  EXPECT_EQ(cost.FlopsOf(AtenOperator::kConvolution),
            IntOr(by_op, "aten.convolution", 0));
  // The table by class holds all of it.
  int64_t by_class = 0;
  for (int i = 0; i <= static_cast<int>(OperatorClass::kConvolution); ++i) {
    by_class += cost.FlopsOf(static_cast<OperatorClass>(i));
  }
  EXPECT_EQ(by_class, cost.TotalFlops());
}

ForwardShape ShapeOf(dom::element entry) {
  const std::vector<int64_t> latent = Ints(entry["latent"]);
  ForwardShape shape;
  shape.batch = IntOr(entry, "batch", 1);
  shape.latent_frames = latent[0];
  shape.latent_height = latent[1];
  shape.latent_width = latent[2];
  shape.text_tokens = IntOr(entry, "text", 512);
  shape.timestep_tokens = IntOr(entry, "timestep_tokens", 1);
  return shape;
}

TEST(TransformerModel, EqualsTorchOnTheWanModels) {
  dom::parser parser;
  int compared = 0;
  for (const auto& [name, entry] :
       LoadFlopsGolden("original_and_torch.json", parser)) {
    dom::array counts;
    if (entry["torch_flop_counter"].get(counts) != simdjson::SUCCESS) continue;
    ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                         KnownModel({name.data(), name.size()}));
    for (const dom::element count : counts) {
      SCOPED_TRACE(std::string(name));
      ForwardShape shape = ShapeOf(count);
      shape.image_tokens = model.transformer()->default_image_tokens;
      ASSERT_OK_AND_ASSIGN(const ForwardCost cost,
                           TransformerForwardCost(*model.transformer(), shape));
      EXPECT_EQ(cost.TotalFlops(), int64_t{count["total"]});
      EXPECT_EQ(LatentTokens(*model.transformer(), shape),
                int64_t{count["tokens"]});
      ExpectEqualsTorch(cost, count["by_op"]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 10);
}

TEST(TransformerModel, EqualsTorchOnEveryFamily) {
  dom::parser parser;
  int compared = 0;
  for (const auto& [key, counts] :
       LoadFlopsGolden("torch_counts.json", parser)) {
    std::string name(key);
    const bool no_guidance = name == "hunyuanvideo-noguidance";
    if (no_guidance) name = "hunyuanvideo";
    const auto known = KnownModel(name);
    if (!known.ok() || known->transformer() == nullptr) continue;
    TransformerConfig config = *known->transformer();
    if (no_guidance) config.guidance = false;
    for (const dom::element count : counts.get_array()) {
      SCOPED_TRACE(std::string(key));
      ASSERT_OK_AND_ASSIGN(const ForwardCost cost,
                           TransformerForwardCost(config, ShapeOf(count)));
      EXPECT_EQ(cost.TotalFlops(), int64_t{count["total"]});
      ExpectEqualsTorch(cost, count["by_op"]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 16);
}

TEST(TextEncoderCost, EqualsTorch) {
  dom::parser parser;
  int compared = 0;
  for (const auto& [name, counts] :
       LoadFlopsGolden("torch_counts.json", parser)) {
    const auto known = KnownModel({name.data(), name.size()});
    if (!known.ok() || known->text_encoder() == nullptr) continue;
    for (const dom::element count : counts.get_array()) {
      SCOPED_TRACE(std::string(name));
      ASSERT_OK_AND_ASSIGN(
          const ForwardCost cost,
          TextEncoderForwardCost(*known->text_encoder(), count["batch"],
                                 IntOr(count, "text", 0)));
      EXPECT_EQ(cost.TotalFlops(), int64_t{count["total"]});
      ExpectEqualsTorch(cost, count["by_op"]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 5);
}

// The same numbers from the config.json text that Diffusers would write.
WanVaeCostConfig VaeConfig(dom::element config) {
  std::string json = simdjson::minify(config);
  const bool is_empty = json == "{}";
  json.insert(1, std::string("\"_class_name\":\"AutoencoderKLWan\"") +
                     (is_empty ? "" : ","));
  const auto model = ReadModelConfig(json, "config.json");
  EXPECT_THAT(model, IsOk());
  return *model->vae();
}

TEST(WanVaeCost, EqualsTorchWholeAndTiled) {
  dom::parser parser;
  int compared = 0;
  for (const auto& [key, counts] :
       LoadFlopsGolden("torch_counts.json", parser)) {
    const std::string name(key);
    if (name.rfind("vae-", 0) != 0) continue;
    for (const dom::element count : counts.get_array()) {
      SCOPED_TRACE(name + " " + simdjson::minify(count["latent"]));
      const WanVaeCostConfig config = VaeConfig(count["config"]);
      const std::vector<int64_t> latent = Ints(count["latent"]);
      const VaeTiling tiling{IntOr(count, "tile", 0),
                             IntOr(count, "stride", 0)};
      const int64_t factor = WanVaeSpatialFactor(config);
      const auto cost =
          name.rfind("vae-dec", 0) == 0
              ? WanVaeDecodeCost(config, count["batch"], latent[0], latent[1],
                                 latent[2], tiling)
              : WanVaeEncodeCost(config, count["batch"], count["frames"],
                                 latent[1] * factor, latent[2] * factor,
                                 tiling);
      ASSERT_THAT(cost, IsOk());
      EXPECT_EQ(cost->TotalFlops(), int64_t{count["total"]});
      ExpectEqualsTorch(*cost, count["by_op"]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 40);
}

TEST(TrainingCost, EqualsTorchForFullAndLoraWithAndWithoutCheckpointing) {
  dom::parser parser;
  dom::array runs = parser
                        .parse(simdjson::padded_string::load(
                            "testdata/flops/torch_training.json"))
                        .get_array();
  int compared = 0;
  for (const dom::element run : runs) {
    const std::string mode(std::string_view{run["mode"]});
    SCOPED_TRACE(mode);
    ASSERT_OK_AND_ASSIGN(const ModelDescription model, KnownModel("wan-tiny"));
    ASSERT_OK_AND_ASSIGN(
        const ForwardCost forward,
        TransformerForwardCost(*model.transformer(), ShapeOf(run)));
    RunOptions options;
    options.training =
        mode.rfind("lora", 0) == 0 ? TrainingMode::kLora : TrainingMode::kFull;
    options.lora_rank = run["rank"];
    options.checkpointing = mode.find("ckpt") != std::string::npos
                                ? Checkpointing::kFull
                                : Checkpointing::kNone;
    ASSERT_OK_AND_ASSIGN(const TrainingStepCost cost,
                         TrainingCost(forward, options));
    EXPECT_EQ(cost.forward, int64_t{run["forward"]});
    EXPECT_EQ(cost.forward + cost.backward + cost.recompute,
              int64_t{run["total"]});
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

TEST(TransformerModel, RefusesSizesThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                       KnownModel("wan2.1-t2v-14b"));
  const TransformerConfig& config = *model.transformer();
  ForwardShape shape{.latent_frames = 21,
                     .latent_height = 60,
                     .latent_width = 104,
                     .text_tokens = 512};
  EXPECT_THAT(TransformerForwardCost(config, shape), IsOk());
  shape.latent_height = 1;
  EXPECT_THAT(TransformerForwardCost(config, shape),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("smaller than the patch 1x2x2")));
  shape.latent_height = -2;
  EXPECT_THAT(TransformerForwardCost(config, shape),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("latent height is -2")));
  shape.latent_height = 1 << 20;
  shape.latent_width = 1 << 20;
  EXPECT_THAT(TransformerForwardCost(config, shape),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("2^63")));
}

TEST(WanVaeCost, RefusesConfigsThatAreNotOne) {
  WanVaeCostConfig config;
  EXPECT_THAT(
      WanVaeDecodeCost(config, 1, 0, 8, 8),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("frames is 0")));
  EXPECT_THAT(WanVaeDecodeCost(config, 1, 1, 64, 64, {64, 4}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("less than one latent")));
  config.temporal_downsample = {};
  EXPECT_THAT(
      WanVaeDecodeCost(config, 1, 1, 8, 8),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one less")));
  config.dim_mult = {};
  EXPECT_THAT(WanVaeDecodeCost(config, 1, 1, 8, 8),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dim_mult has 0 levels")));
}

}  // namespace
}  // namespace firstframe
