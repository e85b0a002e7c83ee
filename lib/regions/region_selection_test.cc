#include "lib/regions/region_selection.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

RegionSelection Parse(const std::string& setting,
                      const RegionSelectionOptions& options = {}) {
  return RegionSelection::Parse(setting, RegionRegistry::Default(), options);
}

TEST(RegionSelection, ShortLongMixedCaseSpacesAndDuplicates) {
  const RegionSelection selection = Parse(
      " model_loading, PROFILER_REGION_Training_Train,model_loading,,"
      "profiler_region_model_loading ");
  EXPECT_THAT(selection.names(),
              ElementsAre("model_loading", "training_train"));
  EXPECT_THAT(selection.warnings(), IsEmpty());
  EXPECT_THAT(selection.requested(),
              ElementsAre("model_loading", "training_train"));
  EXPECT_TRUE(selection.Selects("profiler_region_training_train"));
  EXPECT_FALSE(selection.Selects("training_step"));
}

TEST(RegionSelection, PatternsAndExclusions) {
  const RegionSelection selection =
      Parse("-distillation_loss,distillation_*,!*_update");
  EXPECT_THAT(selection.names(), ElementsAre("distillation_student_forward",
                                             "distillation_teacher_forward"));
  EXPECT_FALSE(selection.Selects("distillation_loss"));
  EXPECT_FALSE(selection.Selects("distillation_update"));
  EXPECT_TRUE(selection.Selects("distillation_new_name"))
      << "a region registered later still matches the pattern";
}

TEST(RegionSelection, AllSelectsAll) {
  const RegionSelection selection = Parse("all,-training_validation");
  EXPECT_THAT(selection.names(), SizeIs(17));
  EXPECT_FALSE(selection.Selects("training_validation"));
}

TEST(RegionSelection, UnknownIsIgnoredWithTheNearestName) {
  const RegionSelection selection = Parse("model_loading,inference_denoisin");
  EXPECT_THAT(selection.names(), ElementsAre("model_loading"));
  ASSERT_THAT(selection.warnings(), SizeIs(1));
  EXPECT_THAT(selection.warnings()[0],
              HasSubstr("FASTVIDEO_TORCH_PROFILE_REGIONS: region "
                        "'inference_denoisin' is not registered and is "
                        "ignored; did you mean 'inference_denoising'?"));
  EXPECT_FALSE(selection.Selects("inference_denoisin"));
}

TEST(RegionSelection, NothingSelectedIsAWarningNotAnError) {
  for (const char* setting :
       {"", " , ,", "no_such_region_at_all", "zzz*", "model_loading,-all"}) {
    const RegionSelection selection = Parse(setting);
    EXPECT_TRUE(selection.empty()) << setting;
    EXPECT_FALSE(selection.Selects("model_loading")) << setting;
    ASSERT_FALSE(selection.warnings().empty()) << setting;
    EXPECT_THAT(selection.warnings().back(), HasSubstr("nothing is collected"))
        << setting;
    EXPECT_THAT(selection.warnings().back(), HasSubstr("training_train"));
  }
}

TEST(RegionSelection, UnregisteredNamesWhenAllowed) {
  const RegionSelection selection = Parse(
      "my_range,Other*", {.allow_unregistered = true, .setting = "--regions"});
  EXPECT_TRUE(selection.Selects("my_range"));
  EXPECT_TRUE(selection.Selects("other_thing"));
  EXPECT_FALSE(selection.Selects("model_loading"));
  const RegionSelection near =
      Parse("model_loadin", {.allow_unregistered = true});
  EXPECT_TRUE(near.Selects("model_loadin"));
  ASSERT_THAT(near.warnings(), SizeIs(1));
  EXPECT_THAT(near.warnings()[0], HasSubstr("'model_loading'?"));
}

TEST(RegionSelection, AliasesAnswerAsTheirRegion) {
  RegionRegistry registry;
  ASSERT_TRUE(registry.Add({.name = "decode", .aliases = {"vae_decode"}}).ok());
  ASSERT_TRUE(registry.Add({.name = "old", .deprecated = "use decode"}).ok());
  const RegionSelection selection =
      RegionSelection::Parse("vae_decode,old", registry);
  EXPECT_THAT(selection.names(), ElementsAre("decode", "old"));
  EXPECT_TRUE(selection.Selects("vae_decode"));
  EXPECT_TRUE(selection.Selects("decode"));
  EXPECT_THAT(selection.warnings(),
              ElementsAre(HasSubstr("'old' is deprecated: use decode")));
  EXPECT_THAT(selection.NeverEntered({"vae_decode", "old"}), IsEmpty());
}

TEST(RegionSelection, ReportsWhatWasNeverEntered) {
  const RegionSelection selection =
      Parse("model_loading,training_dit,distillation_*,-training_epoch");
  EXPECT_THAT(
      selection.NeverEntered({"profiler_region_model_loading", "training_di"}),
      ElementsAre(HasSubstr("'training_dit' was requested and never entered; "
                            "entered was 'training_di'"),
                  HasSubstr("no region that matches 'distillation_*'")));
  EXPECT_THAT(selection.NeverEntered(
                  {"model_loading", "training_dit", "distillation_loss"}),
              IsEmpty());
}

TEST(RegionSelection, ToStringParsesToTheSame) {
  const RegionSelection first = Parse("training_*,-training_dit,model_loading");
  const RegionSelection second = Parse(first.ToString());
  EXPECT_EQ(first.names(), second.names());
  EXPECT_EQ(first.ToString(), second.ToString());
}

}  // namespace
}  // namespace firstframe
