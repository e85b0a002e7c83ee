#include "lib/activation/rank_files.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

std::string Line(absl::string_view module, double sum, int numel) {
  return absl::StrCat("{\"module\": \"", module,
                      "\", \"tensor\": \"out\", \"step\": null, \"sum\": ", sum,
                      ".0, \"abs_mean\": 1.0, \"shape\": [", numel,
                      "], \"dtype\": \"torch.float32\"}\n");
}

TEST(WithRank, AddsItWhereNoneIs) {
  EXPECT_EQ(
      WithRank("{\"module\": \"a\"}\n{\"module\": \"b\", \"rank\": 7}\n", 2),
      "{\"rank\": 2, \"module\": \"a\"}\n"
      "{\"module\": \"b\", \"rank\": 7}\n");
  // Damage stays what it is; a file without an end of line gets one.
  EXPECT_EQ(WithRank("\n{\"mod\n{\"module\": \"c\"}", 0),
            "\n{\"mod\n{\"rank\": 0, \"module\": \"c\"}\n");
  EXPECT_EQ(WithRank("", 0), "");
}

TEST(OpenRankFiles, NumbersFilesAsTheirNamesDo) {
  const testing::TempDir dir;
  const std::vector<std::string> paths = {
      dir.Write("rank_10.jsonl", Line("c", 3, 4)),
      dir.Write("rank_2.jsonl", Line("b", 2, 4)),
      dir.Write("rank_1.jsonl", Line("a", 1, 4))};
  ASSERT_OK_AND_ASSIGN(const TraceInput input, OpenRankFiles(paths, "all"));
  EXPECT_EQ(input.name(), "all");
  const std::string text(input.text());
  EXPECT_LT(text.find("{\"rank\": 0, \"module\": \"a\""),
            text.find("{\"rank\": 1, \"module\": \"b\""));
  EXPECT_LT(text.find("{\"rank\": 1, \"module\": \"b\""),
            text.find("{\"rank\": 2, \"module\": \"c\""));
}

// Two shards of a tensor against the whole.
TEST(OpenRankFiles, MergesWithMergeRanks) {
  const testing::TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      const TraceInput shards,
      OpenRankFiles({dir.Write("0.jsonl", Line("a", 1, 4) + Line("b", 5, 4)),
                     dir.Write("1.jsonl", Line("a", 2, 4) + Line("b", 6, 4))},
                    "shards"));
  ASSERT_OK_AND_ASSIGN(
      const TraceInput whole,
      TraceInput::FromString(Line("a", 3, 8) + Line("b", 11, 8), "whole"));
  CompareOptions options;
  options.align.merge_ranks = true;
  ASSERT_OK_AND_ASSIGN(const Comparison c,
                       CompareTraces(shards, whole, options));
  EXPECT_EQ(c.alignment.pairs.size(), 2u);
  EXPECT_NE(c.verdict, Verdict::kDiffer) << Explain(c);
  EXPECT_NE(c.verdict, Verdict::kUndecided);
}

}  // namespace
}  // namespace firstframe
