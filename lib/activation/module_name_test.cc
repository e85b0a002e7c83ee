#include "lib/activation/module_name.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CanonicalModule, DropsWrappersAndUnifiesIndices) {
  EXPECT_EQ(CanonicalModule("_orig_mod.module.blocks[3].attn1"),
            "blocks.3.attn1");
  EXPECT_EQ(CanonicalModule("blocks/3/_fsdp_wrapped_module/ffn"),
            "blocks.3.ffn");
  EXPECT_EQ(CanonicalModule("WanTransformer3DModel.blocks.0"), "blocks.0");
  EXPECT_EQ(CanonicalModule("Linear"), "Linear");
  EXPECT_EQ(CanonicalModule("a.module.b"), "a.module.b");
  EXPECT_EQ(CanonicalModule("to_q.base_layer"), "to_q");
  EXPECT_EQ(CanonicalModule("x[a]"), "x[a]");
}

TEST(ModuleTemplate, ReplacesNumbersAlone) {
  EXPECT_EQ(ModuleTemplate("decoder.up_blocks.1.resnets.0.conv1"),
            "decoder.up_blocks.*.resnets.*.conv1");
  EXPECT_EQ(ModuleTemplate("norm2"), "norm2");
  EXPECT_EQ(LeafTemplate("a.resample.1"), "resample.*");
  EXPECT_EQ(LeafTemplate("a.1.conv"), "conv");
}

TEST(NameMap, TakesTheFirstRuleThatMatches) {
  ASSERT_OK_AND_ASSIGN(
      const NameMap map,
      NameMap::Parse("# Wan\n"
                     "^blocks\\.(\\d+)\\.self_attn\\.q$ => "
                     "blocks.\\1.attn1.to_qkv 0/3\n"
                     "r\"^blocks\\.(\\d+)\\.self_attn\\.(k)\\.(.*)$\": "
                     "(r\"blocks.\\1.attn1.to_qkv.\\3\", 1, 3),\n"
                     "r\"^head\\.(.*)$\": r\"proj_out.\\1\",\n"));
  const auto q = map.Apply("blocks.7.self_attn.q");
  EXPECT_EQ(q->name, "blocks.7.attn1.to_qkv");
  EXPECT_EQ(q->count, 3);
  const auto k = map.Apply("blocks.7.self_attn.k");
  EXPECT_EQ(k->name, "blocks.7.attn1.to_qkv");
  EXPECT_EQ(k->index, 1);
  EXPECT_EQ(map.Apply("head")->name, "proj_out");
  EXPECT_EQ(map.Apply("head.linear")->name, "proj_out.linear");
  EXPECT_FALSE(map.Apply("blocks.7").has_value());
}

TEST(NameMap, SaysWhichLineIsWrong) {
  EXPECT_THAT(NameMap::Parse("a => b\nnonsense\n"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("map line 2: found 'nonsense'")));
  const absl::Status endless =
      NameMap::Parse(std::string(100'000, 'x')).status();
  EXPECT_THAT(std::string(endless.message()), HasSubstr("xxx...'"));
  EXPECT_LT(endless.message().size(), 250u);
  EXPECT_THAT(NameMap::Parse("( => b"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("map line 1: regular expression")));
  EXPECT_THAT(NameMap::Parse("a => \\3"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("map line 1: target")));
  EXPECT_THAT(
      NameMap::Parse("a => b 3/3"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("part 3 of 3")));
}

}  // namespace
}  // namespace firstframe
