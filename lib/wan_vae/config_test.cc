#include "lib/wan_vae/config.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/wan_vae/testdata.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class WanVaeConfigPreset : public ::testing::TestWithParam<const char*> {};

TEST_P(WanVaeConfigPreset, EqualsWhatDiffusersWrote) {
  const std::string path =
      testing::VaeTestdata(absl::StrCat(GetParam(), "_config.json"));
  ASSERT_OK_AND_ASSIGN(const WanVaeConfig preset, WanVaePreset(GetParam()));
  EXPECT_THAT(ParseWanVaeConfig(testing::ReadFile(path), path),
              IsOkAndHolds(preset));
}

TEST_P(WanVaeConfigPreset, SurvivesARoundTrip) {
  ASSERT_OK_AND_ASSIGN(const WanVaeConfig preset, WanVaePreset(GetParam()));
  EXPECT_THAT(ParseWanVaeConfig(WanVaeConfigToJson(preset), "again"),
              IsOkAndHolds(preset));
}

INSTANTIATE_TEST_SUITE_P(All, WanVaeConfigPreset,
                         ::testing::Values("tiny", "small", "wan21"));

TEST(WanVaeConfig, DefaultsAreThePublishedModel) {
  EXPECT_THAT(ParseWanVaeConfig("{}", "c"), IsOkAndHolds(WanVaeConfig()));
  EXPECT_EQ(WanVaeConfig().SpatialFactor(), 8);
  EXPECT_EQ(WanVaeConfig().TemporalFactor(), 4);
}

TEST(WanVaeConfig, DecoderWidthOfItsOwnSurvivesARoundTrip) {
  WanVaeConfig config;
  config.decoder_base_dim = 128;
  config.dropout = 0.25;
  EXPECT_THAT(ParseWanVaeConfig(WanVaeConfigToJson(config), "again"),
              IsOkAndHolds(config));
}

TEST(WanVaeConfig, AcceptsWhatChangesNothing) {
  for (const char* json :
       {R"({"patch_size": null})", R"({"patch_size": 1})",
        R"({"attn_scales": []})", R"({"is_residual": false})",
        R"({"_name_or_path": "x", "_commit": {"a": [1]}})",
        R"({"scale_factor_spatial": null, "scale_factor_temporal": null})",
        R"({"scale_factor_spatial": 8, "decoder_base_dim": null})"}) {
    EXPECT_THAT(ParseWanVaeConfig(json, "c"), IsOkAndHolds(WanVaeConfig()))
        << json;
  }
}

TEST(WanVaeConfig, RefusesByNameAndValue) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"is_residual": true})", "is_residual is true"},
      {R"({"patch_size": 2})", "patch_size is 2"},
      {R"({"patch_size": "2"})", "patch_size is \"2\""},
      {R"({"attn_scales": [0.5]})", "attn_scales is [0.5]"},
      {R"({"base_dim": 0})", "base_dim is 0"},
      {R"({"base_dim": 1})", "decoder_base_dim is 1"},
      {R"({"base_dim": 96.5})", "base_dim is 96.5"},
      {R"({"base_dim": null})", "base_dim is null"},
      {R"({"base_dim": 9223372036854775807})",
       "base_dim is 9223372036854775807"},
      {R"({"base_dim": 99999999999999999999})", "not JSON"},
      {R"({"dim_mult": []})", "the length of dim_mult is 0"},
      {R"({"dim_mult": [1, -2, 4, 4]})", "an entry of dim_mult is -2"},
      {R"({"dim_mult": [1, 1000000, 4, 4]})",
       "an entry of dim_mult is 1000000"},
      {R"({"dim_mult": [1, 2]})", "temperal_downsample is a list of 3"},
      {R"({"dim_mult": 4})", "dim_mult is 4"},
      {R"({"temperal_downsample": [0, 1, 1]})",
       "an entry of temperal_downsample"},
      {R"({"scale_factor_spatial": 16})",
       "scale_factor_spatial is 16, expected 8"},
      {R"({"scale_factor_temporal": 8})",
       "scale_factor_temporal is 8, expected 4"},
      {R"({"z_dim": 48})", "latents_mean is a list of 16"},
      {R"({"latents_std": [0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]})",
       "an entry of latents_std is 0"},
      {R"({"dropout": -1})", "dropout is -1"},
      {R"({"num_res_blocks": 0})", "num_res_blocks is 0"},
      {R"({"temporal_downsample": [true]})",
       "did you mean 'temperal_downsample'"},
      {R"({"block_out_channels": [1]})",
       "unknown field 'block_out_channels' ([1])"},
      {R"({"z_dim": 16, "z_dim": 16})", "'z_dim' is given twice"},
      {R"({"_class_name": "AutoencoderKL"})",
       "_class_name is \"AutoencoderKL\""},
      {"[]", "expected an object"},
      {"", "not JSON"},
      {R"({"z_dim": NaN})", "not JSON"},
  };
  for (const auto& [json, message] : cases) {
    EXPECT_THAT(
        ParseWanVaeConfig(json, "vae/config.json"),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr("vae/config.json: "), HasSubstr(message))))
        << json;
  }
}

TEST(WanVaeConfig, EveryPrefixIsAnErrorOrAConfig) {
  const std::string json = WanVaeConfigToJson(WanVaeConfig());
  const size_t closing = json.rfind('}');
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_EQ(ParseWanVaeConfig(json.substr(0, size), "c").ok(), size > closing)
        << size;
  }
}

TEST(WanVaeConfig, UnknownPresetNamesTheKnown) {
  EXPECT_THAT(WanVaePreset("huge"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'huge', expected tiny, small or wan21")));
}

}  // namespace
}  // namespace firstframe
