#include "lib/activation/map_presets.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/activation/name_map.h"
#include "lib/activation/trace_input.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TraceInput Port(absl::string_view name) {
  return *TraceInput::Open(
      absl::StrCat("testdata/activation_trace/ports/", name, ".jsonl.gz"));
}

absl::StatusOr<Comparison> Compare(absl::string_view preset,
                                   absl::string_view left,
                                   absl::string_view right) {
  const NameMap map = *NameMap::Parse(FindMapPreset(preset)->text);
  CompareOptions options;
  options.align.preset = &map;
  static std::vector<std::unique_ptr<TraceInput>> inputs;  // borrowed text
  for (const absl::string_view name : {left, right}) {
    inputs.push_back(std::make_unique<TraceInput>(Port(name)));
  }
  return CompareTraces(**(inputs.end() - 2), **(inputs.end() - 1), options);
}

TEST(MapPresets, AllParseAndSayWhatTheyAre) {
  EXPECT_THAT(MapPresets(), SizeIs(19));
  for (const MapPreset& preset : MapPresets()) {
    const auto map = NameMap::Parse(preset.text);
    ASSERT_TRUE(map.ok()) << preset.name;
    EXPECT_FALSE(map->empty()) << preset.name;
    EXPECT_THAT(std::string(preset.summary), HasSubstr(" to FastVideo's"))
        << preset.name;
  }
  EXPECT_FALSE(FindMapPreset("no such model").has_value());
}

struct PortCase {
  const char* family;
  size_t pairs;
  const char* bug;
};

class Ports : public ::testing::TestWithParam<PortCase> {
 protected:
  std::string diffusers_ = absl::StrCat(GetParam().family, "_diffusers");
  std::string fastvideo_ = absl::StrCat(GetParam().family, "_fastvideo");
};

// Both models with the same weights, traced by FastVideo's own hook.
TEST_P(Ports, EveryRecordIsAlignedAndTheSame) {
  for (const bool turned : {false, true}) {
    ASSERT_OK_AND_ASSIGN(
        const Comparison c,
        Compare(GetParam().family, turned ? fastvideo_ : diffusers_,
                turned ? diffusers_ : fastvideo_));
    EXPECT_THAT(c.trouble, IsEmpty());
    EXPECT_EQ(c.alignment.pairs.size(), GetParam().pairs);
    EXPECT_FALSE(c.divergence.first.has_value()) << Explain(c);
    EXPECT_NE(c.verdict, Verdict::kDiffer);
    EXPECT_NE(c.verdict, Verdict::kUndecided);
    for (const RowPair& pair : c.alignment.pairs) {
      EXPECT_FALSE(IsFuzzy(pair.method));
    }
  }
}

TEST_P(Ports, AWrongWeightIsNamed) {
  ASSERT_OK_AND_ASSIGN(
      const Comparison c,
      Compare(GetParam().family, diffusers_, absl::StrCat(fastvideo_, "_bug")));
  ASSERT_TRUE(c.divergence.first.has_value());
  EXPECT_EQ(DescribePlace(c, *c.divergence.first), GetParam().bug);
}

// Without the preset nothing is aligned wrongly and called a pass.
TEST_P(Ports, WithoutThePresetTheAnswerIsOpen) {
  const TraceInput a = Port(diffusers_), b = Port(fastvideo_);
  EXPECT_EQ(CompareTraces(a, b, {})->verdict, Verdict::kUndecided);
}

// Ten blocks over four steps: drift of two precisions, float32 norms between
// bfloat16 layers, two repositories. Nothing is wrong.
TEST(PortsOverSteps, HealthyPairsDoNotFire) {
  const std::pair<const char*, const char*> pairs[] = {
      {"wan_steps_diffusers_fp32", "wan_steps_diffusers_bf16"},
      {"wan_steps_diffusers_fp32", "wan_steps_fastvideo_bf16"},
      {"wan_steps_diffusers_bf16", "wan_steps_fastvideo_bf16"}};
  for (const auto& [left, right] : pairs) {
    ASSERT_OK_AND_ASSIGN(const Comparison c, Compare("wan", left, right));
    EXPECT_THAT(c.trouble, IsEmpty()) << left << " " << right;
    EXPECT_EQ(c.verdict, Verdict::kSame)
        << left << " " << right << ": " << Explain(c);
    EXPECT_GT(c.divergence.num_different, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Ports,
    ::testing::Values(PortCase{"wan", 79, "blocks.1.attn1.to_k"},
                      PortCase{"hunyuan", 115,
                               "transformer_blocks.1.attn.to_v"}),
    [](const auto& info) { return std::string(info.param.family); });

}  // namespace
}  // namespace firstframe
