#include "lib/flops/architecture_reader.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/flops/golden_layouts.h"
#include "lib/flops/known_models.h"
#include "lib/flops/transformer_model.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::LoadGoldenLayouts;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

int64_t Price(const TransformerConfig& config) {
  const ForwardShape shape{.batch = 2,
                           .latent_frames = 5,
                           .latent_height = 60,
                           .latent_width = 104,
                           .text_tokens = config.default_text_tokens,
                           .image_tokens = config.default_image_tokens};
  const auto cost = TransformerForwardCost(config, shape);
  EXPECT_THAT(cost, IsOk());
  return cost.ok() ? cost->TotalFlops() : -1;
}

// A safetensors header says as much about cost as the config does.
TEST(ReadModelLayout, InfersEveryKnownArchitectureFromShapes) {
  int compared = 0;
  for (const auto& [name, layout] : LoadGoldenLayouts()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const ModelDescription inferred,
                         ReadModelLayout(layout, name));
    ASSERT_OK_AND_ASSIGN(const ModelDescription known, KnownModel(name));
    EXPECT_EQ(inferred.class_name, known.class_name);
    EXPECT_EQ(Price(*inferred.transformer()), Price(*known.transformer()));
    EXPECT_EQ(inferred.compat->params, known.compat->params);
    EXPECT_EQ(inferred.compat->widths.self, known.compat->widths.self);
    ++compared;
  }
  EXPECT_EQ(compared, 10);
}

TEST(ReadModelLayout, FallsBackToLinearLayersAndSaysSo) {
  ModelLayout layout;
  layout.Add("some.weight", {100, 10});
  ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                       ReadModelLayout(layout, "x.safetensors"));
  EXPECT_EQ(model.transformer()->family, TransformerFamily::kUnknown);
  EXPECT_THAT(model.notes, ::testing::Contains(HasSubstr("only linear")));
  const ForwardShape shape{
      .latent_frames = 2, .latent_height = 3, .latent_width = 4};
  ASSERT_OK_AND_ASSIGN(const ForwardCost cost,
                       TransformerForwardCost(*model.transformer(), shape));
  EXPECT_EQ(cost.TotalFlops(), 2 * 1000 * 24);
  EXPECT_THAT(ReadModelLayout(ModelLayout(), "empty"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no tensors")));
}

TEST(ReadModelLayout, ReadsWansOwnNames) {
  ModelLayout layout;
  layout.Add("patch_embedding.weight", {1536, 16, 1, 2, 2});
  layout.Add("text_embedding.0.weight", {1536, 4096});
  layout.Add("time_embedding.0.weight", {1536, 256});
  layout.Add("head.head.weight", {64, 1536});
  for (int i = 0; i < 30; ++i) {
    const std::string block = "blocks." + std::to_string(i);
    for (const char* attention : {".self_attn.", ".cross_attn."}) {
      for (const char* projection : {"q", "k", "v", "o"}) {
        layout.Add(block + attention + projection + ".weight", {1536, 1536});
      }
    }
    layout.Add(block + ".ffn.0.weight", {8960, 1536});
  }
  ASSERT_OK_AND_ASSIGN(const ModelDescription model,
                       ReadModelLayout(layout, "wan"));
  ASSERT_OK_AND_ASSIGN(const ModelDescription known,
                       KnownModel("wan2.1-t2v-1.3b"));
  EXPECT_EQ(Price(*model.transformer()), Price(*known.transformer()));
  // The original's figure for the class that states text_len.
  EXPECT_EQ(model.stated_text_tokens, 512);
  EXPECT_EQ(model.compat->AttentionFlops(32760), 200907089510400.0);
  EXPECT_EQ(known.stated_text_tokens, 0) << "Diffusers' class states none";
}

TEST(ReadModelConfig, ReadsTheTextLengthThatWansOwnClassStates) {
  ASSERT_OK_AND_ASSIGN(
      const ModelDescription model,
      ReadModelConfig(R"({"_class_name": "WanModel", "dim": 1536,
          "num_heads": 12, "num_layers": 30, "ffn_dim": 8960, "text_len": 77})",
                      "c"));
  EXPECT_EQ(model.stated_text_tokens, 77);
  EXPECT_EQ(model.transformer()->default_text_tokens, 77);
}

TEST(ReadModelConfig, NamesWhatIsWrong) {
  EXPECT_THAT(ReadModelConfig("[]", "config.json"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("config.json: expected a JSON object")));
  EXPECT_THAT(ReadModelConfig(R"({"_class_name": "UNet2DModel"})", "c"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("no cost model for class 'UNet2DModel'")));
  EXPECT_THAT(
      ReadModelConfig(
          R"({"_class_name": "WanTransformer3DModel", "num_layers": "40"})",
          "c"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("num_layers: expected an integer")));
  EXPECT_THAT(ReadModelConfig(
                  R"({"_class_name": "FluxTransformer2DModel",
              "num_attention_heads": 99999999999999})",
                  "c"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("num_attention_heads")));
  EXPECT_THAT(ReadModelConfig(R"({"_class_name": "WanModel", "dim": 0})", "c"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("attention_head_dim is 0")));
}

TEST(ReadModelConfig, RefusesRatiosThatNoWidthHas) {
  for (const char* ratio : {"1e300", "-1", "1025"}) {
    EXPECT_THAT(
        ReadModelConfig(
            absl::StrCat(R"({"_class_name": "HunyuanVideoTransformer3DModel",)"
                         R"("mlp_ratio": )",
                         ratio, "}"),
            "c"),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("mlp_ratio: expected a number from 0 to 1024")))
        << ratio;
  }
}

TEST(ReadModelConfig, SurvivesEveryTruncation) {
  const std::string json =
      R"({"_class_name":"AutoencoderKLWan","dim_mult":[1,2,4,4],)"
      R"("temperal_downsample":[false,true,true],"z_dim":16})";
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_THAT(ReadModelConfig(json.substr(0, size), "c"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("c:")));
  }
  EXPECT_THAT(ReadModelConfig(json, "c"), IsOk());
}

TEST(KnownModel, SuggestsTheNearestName) {
  EXPECT_THAT(KnownModel("wan2.1-t2v-14"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("did you mean 'wan2.1-t2v-14b'?")));
  for (const std::string& name : KnownModelNames()) {
    EXPECT_THAT(KnownModel(name), IsOk()) << name;
  }
}

// Public configs, where the corpus is at hand.
TEST(ReadModelConfig, ReadsThePublishedFiles) {
  const char* corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  const struct {
    const char* path;
    const char* known;
  } cases[] = {
      {"wan_original_t2v.json", "wan2.1-t2v-14b"},
      {"wan_original_t2v_1.3B.json", "wan2.1-t2v-1.3b"},
      {"flux1/transformer/config.json", "flux-schnell"},
      {"mochi/transformer/config.json", "mochi-1"},
      {"flux1/text_encoder/config.json", "clip-l-text"},
      {"flux1/text_encoder_2/config.json", "t5-xxl"},
      {"wan2.1_vae_AutoencoderKLWan.config.json", "wan2.1-vae"},
  };
  for (const auto& [path, name] : cases) {
    SCOPED_TRACE(path);
    ASSERT_OK_AND_ASSIGN(
        const ModelDescription model,
        ReadModelConfig(ReadFile(std::string(corpus) + "/configs/" + path),
                        path));
    ASSERT_OK_AND_ASSIGN(const ModelDescription known, KnownModel(name));
    ASSERT_EQ(model.config.index(), known.config.index());
    if (model.transformer() != nullptr) {
      EXPECT_EQ(Price(*model.transformer()), Price(*known.transformer()));
    }
    if (model.text_encoder() != nullptr) {
      ASSERT_OK_AND_ASSIGN(
          const ForwardCost cost,
          TextEncoderForwardCost(*model.text_encoder(), 1, 77));
      ASSERT_OK_AND_ASSIGN(
          const ForwardCost expected,
          TextEncoderForwardCost(*known.text_encoder(), 1, 77));
      EXPECT_EQ(cost.TotalFlops(), expected.TotalFlops());
    }
  }
}

}  // namespace
}  // namespace firstframe
