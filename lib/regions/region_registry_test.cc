#include "lib/regions/region_registry.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

const bool kRegistered = RegisterRegion(
    {.name = "test_startup", .description = "Registered before main."});

TEST(RegionRegistry, HoldsTheEighteenKnownNames) {
  const RegionRegistry registry = RegionRegistry::Default();
  for (const char* name :
       {"model_loading", "inference_pre_denoising", "inference_denoising",
        "inference_post_denoising", "training_checkpoint_saving",
        "training_dit", "training_validation", "training_epoch",
        "training_step", "training_backward", "training_optimizer",
        "distillation_teacher_forward", "distillation_student_forward",
        "distillation_loss", "distillation_update", "training_save_checkpoint",
        "training_train_one_step", "training_train"}) {
    ASSERT_NE(registry.Find(name), nullptr) << name;
    EXPECT_FALSE(registry.Find(name)->description.empty()) << name;
    EXPECT_FALSE(registry.Find(name)->owner.empty()) << name;
  }
  EXPECT_EQ(registry.regions().size(), 18u + (kRegistered ? 1u : 0u));
}

TEST(RegionRegistry, AllSpellingsNameOneRegion) {
  const RegionRegistry registry = RegionRegistry::Default();
  for (const char* spelling :
       {"model_loading", "profiler_region_model_loading", " Model_Loading ",
        "PROFILER_REGION_MODEL_LOADING", "fastvideo.region::model_loading",
        "fastvideo.region::profiler_region_model_loading"}) {
    ASSERT_NE(registry.Find(spelling), nullptr) << spelling;
    EXPECT_EQ(registry.Find(spelling)->name, "model_loading");
    EXPECT_EQ(RegionSpanName(spelling), "fastvideo.region::model_loading");
  }
  EXPECT_EQ(registry.Find("model_load"), nullptr);
  EXPECT_EQ(registry.Find(""), nullptr);
}

TEST(RegionRegistry, RefusesMalformedNames) {
  RegionRegistry registry;
  for (const char* name : {"", "Upper", "has space", "a,b", "a*", "tab\t",
                           "-leading", "new\nline", "\xff", "q\"uote"}) {
    EXPECT_THAT(
        registry.Add({.name = name}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("region name")))
        << name;
  }
  EXPECT_THAT(registry.Add({.name = "解码_\xF0\x9F\x8E\xAC"}), IsOk());
  EXPECT_NE(registry.Find("解码_\xF0\x9F\x8E\xAC"), nullptr);
}

TEST(RegionRegistry, NamesAndAliasesAreUnique) {
  RegionRegistry registry;
  ASSERT_THAT(registry.Add({.name = "decode", .aliases = {"vae_decode"}}),
              IsOk());
  EXPECT_EQ(registry.Find("profiler_region_vae_decode")->name, "decode");
  EXPECT_THAT(registry.Add({.name = "decode"}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("'decode' is already registered")));
  EXPECT_THAT(registry.Add({.name = "profiler_region_decode"}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("decode")));
  EXPECT_THAT(registry.Add({.name = "vae_decode"}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("alias of 'decode'")));
  EXPECT_THAT(registry.Add({.name = "other", .aliases = {"decode"}}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr("already names 'decode'")));
  EXPECT_THAT(registry.Add({.name = "self", .aliases = {"self"}}),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("self")));
  EXPECT_EQ(registry.Find("other"), nullptr);
}

}  // namespace
}  // namespace firstframe
