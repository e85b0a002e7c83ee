#include "lib/activation/name_map.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

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

TEST(NameMap, ChangesLabels) {
  ASSERT_OK_AND_ASSIGN(
      const NameMap map,
      NameMap::Parse("^n\\.(\\d+) out\\[0\\]$ => m.\\1 out\n"
                     "^s\\.(\\d+) out\\[1\\]$ => t.\\1 out 1/2\n"
                     "^r (out.*)$ => q \\1.x\n"));
  const auto n = map.Apply("n.4", "out[0]");
  ASSERT_TRUE(n.has_value());
  EXPECT_EQ(n->name, "m.4");
  EXPECT_EQ(n->tensor, "out");
  EXPECT_FALSE(map.Apply("n.4", "out[1]").has_value());
  const auto s = map.Apply("s.0", "out[1]");
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->name, "t.0");
  EXPECT_EQ(s->index, 1);
  EXPECT_EQ(s->count, 2);
  EXPECT_EQ(map.Apply("r", "out[3]")->tensor, "out[3].x");
}

TEST(NameMap, KnowsWhatHasNoCounterpart) {
  ASSERT_OK_AND_ASSIGN(const NameMap map,
                       NameMap::Parse("^drop$ => -\n"
                                      "- => ^res\\.\\d+$\n"
                                      "- => ^tuple out\\[1\\]$\n"
                                      "^drop.*$ => other\n"));
  EXPECT_TRUE(map.Apply("drop")->has_none);
  EXPECT_FALSE(map.Apply("drop.x")->has_none);
  EXPECT_TRUE(map.IsTargetAlone("res.3"));
  EXPECT_FALSE(map.IsTargetAlone("res.3.x"));
  EXPECT_TRUE(map.IsTargetAlone("tuple", "out[1]"));
  EXPECT_FALSE(map.IsTargetAlone("tuple", "out[0]"));
  EXPECT_EQ(map.size(), 4u);
}

}  // namespace
}  // namespace firstframe
