#include "lib/activation/compare.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare_testing.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::testing::AnyOf;
using testing::CompareText;
using ::testing::ElementsAre;
using testing::FirstOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Toy;
using testing::ToyTrace;

TEST(CompareTraces, FailsClosed) {
  const std::string trace = ToyTrace();
  EXPECT_THAT(CompareText(trace, "")->result.trouble,
              ElementsAre(HasSubstr("b: no records to compare")));
  EXPECT_EQ(CompareText("", "")->result.verdict, Verdict::kUndecided);
  const auto disjoint = CompareText(
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": null, \"sum\": "
      "1.0}\n",
      "{\"module\": \"b\", \"tensor\": \"out\", \"step\": null, \"sum\": "
      "9.0, \"shape\": [2]}\n");
  EXPECT_THAT(disjoint->result.trouble,
              ElementsAre(HasSubstr("no module in common")));
  const auto torn = CompareText(trace, trace.substr(0, trace.size() - 30));
  EXPECT_EQ(torn->result.verdict, Verdict::kUndecided);
  EXPECT_THAT(torn->result.trouble[0], HasSubstr("the last half-written"));
  CompareOptions lenient;
  lenient.lenient = true;
  lenient.max_unmatched = 1;
  EXPECT_EQ(CompareText(trace, trace.substr(0, trace.size() - 30), lenient)
                ->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, ReportsMissingModulesTogether) {
  const auto c = CompareText(ToyTrace(), ToyTrace([](Toy& toy) {
                               toy.omit = toy.module == "blocks.3.attn" ||
                                          toy.module == "blocks.4.attn";
                             }));
  EXPECT_EQ(c->result.verdict, Verdict::kUndecided);
  EXPECT_THAT(c->result.trouble,
              ElementsAre(HasSubstr("2 records missing on the right: "
                                    "blocks.3.attn (1), blocks.4.attn (1)")));
  CompareOptions tolerant;
  tolerant.max_unmatched = 2;
  EXPECT_EQ(CompareText(ToyTrace(), ToyTrace([](Toy& toy) {
                          toy.omit = toy.module == "blocks.3.attn" ||
                                     toy.module == "blocks.4.attn";
                        }),
                        tolerant)
                ->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, HardDifferencesNeedNoTolerance) {
  const auto differ = [](const std::function<void(Toy&)>& change) {
    const auto c = CompareText(ToyTrace(), ToyTrace(change));
    return FirstOf(c->result) + ": " + Explain(c->result);
  };
  EXPECT_THAT(differ([](Toy& t) {
                if (t.module == "blocks.5.mlp") t.shape = "[1, 65, 64]";
              }),
              HasSubstr("blocks.5.mlp: blocks.5.mlp is the first to differ: "
                        "shape [1, 64, 64] against [1, 65, 64]"));
  EXPECT_THAT(differ([](Toy& t) {
                if (t.module == "blocks.5.mlp") t.dtype = "torch.int32";
              }),
              HasSubstr("dtype bfloat16 against int32"));
  EXPECT_THAT(differ([](Toy& t) {
                if (t.module >= "blocks.7" && t.module < "blocks.8") {
                  t.abs_mean = t.mean = std::nan("");
                }
              }),
              HasSubstr("blocks.7.norm is the first to differ: finite values "
                        "against abs_mean NaN, mean NaN"));
}

// The matrix of what two numbers can be.
TEST(CompareTraces, ComparesEveryKindWithEveryOther) {
  const std::vector<std::string> kinds = {
      "1.0",       "NaN",  "Infinity",
      "-Infinity", "null", "\"<error: RuntimeError('x')>\""};
  for (const std::string& left : kinds) {
    for (const std::string& right : kinds) {
      const auto record = [](const std::string& value) {
        return absl::StrCat(
            "{\"module\": \"a\", \"tensor\": \"out\", \"step\": null, "
            "\"abs_mean\": ",
            value, ", \"std\": 2.0}\n");
      };
      const auto c = CompareText(record(left), record(right));
      // jq turns NaN into null: those two are one kind.
      const auto kind = [](const std::string& value) {
        return value == "null" ? std::string("NaN") : value;
      };
      const bool same = kind(left) == kind(right);
      EXPECT_EQ(c->result.divergence.first.has_value(), !same)
          << left << " against " << right;
      if (same && left != "1.0" && left[0] != '"') {
        EXPECT_EQ(c->result.divergence.num_both_non_finite, 1)
            << left << " is never a pass of values";
        EXPECT_EQ(c->result.verdict, Verdict::kSame);
      }
    }
  }
}

TEST(CompareTraces, ZeroEqualsZero) {
  const auto zero = [](Toy& t) { t.abs_mean = t.mean = t.std = 0; };
  EXPECT_EQ(CompareText(ToyTrace(zero), ToyTrace(zero))->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, InputsThatDifferAreNotBlamedOnTheFirstLayer) {
  const auto c =
      CompareText(ToyTrace(), ToyTrace([](Toy& t) { t.abs_mean *= 1.5; }));
  EXPECT_TRUE(c->result.divergence.inputs_differ);
  EXPECT_THAT(Explain(c->result), HasSubstr("the inputs differ"));
}

TEST(CompareTraces, TellsAPermutationByItsHashes) {
  const auto hashes = [](const char* pos) {
    return [pos](Toy& t) {
      t.extra = absl::StrCat(", \"h_set\": \"00000000000000aa\", \"h_pos\": \"",
                             t.module == "blocks.6.attn" ? pos : "01", "\"");
    };
  };
  const auto c = CompareText(ToyTrace(hashes("0a")), ToyTrace(hashes("0b")));
  EXPECT_EQ(FirstOf(c->result), "blocks.6.attn");
  EXPECT_THAT(Explain(c->result),
              HasSubstr("the same values in another order"));
}

TEST(CompareTraces, RunsRanksAndStepsAreChosen) {
  // Two runs appended: steps fall back.
  const std::string two = ToyTrace([](Toy& t) { t.abs_mean *= 3; }, 4, "1") +
                          ToyTrace({}, 4, "0") + ToyTrace({}, 4, "1");
  const std::string one = ToyTrace({}, 4, "0") + ToyTrace({}, 4, "1");
  const auto last = CompareText(two, one);
  EXPECT_EQ(last->result.verdict, Verdict::kIdentical);
  EXPECT_THAT(last->result.warnings,
              ElementsAre(HasSubstr("a holds 2 runs; the last is compared")));
  CompareOptions first;
  first.align.run = "0";
  EXPECT_EQ(CompareText(two, ToyTrace({}, 4, "1"), first)->result.verdict,
            Verdict::kDiffer);
  // Runs without steps show in the counts alone.
  const auto counted = CompareText(
      ToyTrace([](Toy& t) { t.abs_mean *= 3; }) + ToyTrace(), ToyTrace());
  EXPECT_EQ(counted->result.verdict, Verdict::kIdentical);
  EXPECT_THAT(counted->result.warnings,
              ElementsAre(HasSubstr("2 times as often")));
  // One side without steps: by occurrence.
  const auto flat = CompareText(ToyTrace({}, 4) + ToyTrace({}, 4), one);
  EXPECT_EQ(flat->result.verdict, Verdict::kIdentical);
  EXPECT_EQ(flat->result.alignment.pairs[0].method, MatchMethod::kOccurrence);
}

TEST(CompareTraces, MergesRanksAndHalvesOfABatch) {
  std::string ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks += ToyTrace([&](Toy& t) {
      t.shape = "[1, 32, 64]";
      t.extra = absl::StrCat(", \"rank\": ", rank);
    });
  }
  CompareOptions merge;
  merge.align.merge_ranks = true;
  const auto merged = CompareText(ranks, ToyTrace(), merge);
  EXPECT_THAT(merged->result.trouble, IsEmpty());
  EXPECT_EQ(merged->result.verdict, Verdict::kSame) << Explain(merged->result);
  EXPECT_EQ(merged->result.alignment.pairs[0].method, MatchMethod::kMerged);
  // Two calls of half the batch against one of the whole.
  const auto half = [](Toy& t) { t.shape = "[1, 64, 64]"; };
  const auto whole = [](Toy& t) { t.shape = "[2, 64, 64]"; };
  const auto halves =
      CompareText(ToyTrace(half) + ToyTrace(half), ToyTrace(whole));
  EXPECT_THAT(halves->result.trouble, IsEmpty());
  EXPECT_EQ(halves->result.verdict, Verdict::kSame) << Explain(halves->result);
}

TEST(CompareTraces, MapsNamesAndFusedProjections) {
  const std::string left =
      "{\"module\": \"b.0.q\", \"tensor\": \"out\", \"step\": null, \"sum\": "
      "2.0, \"shape\": [4]}\n"
      "{\"module\": \"b.0.k\", \"tensor\": \"out\", \"step\": null, \"sum\": "
      "3.0, \"shape\": [4]}\n";
  const std::string right =
      "{\"module\": \"t.0.qk\", \"tensor\": \"out\", \"step\": null, \"sum\": "
      "5.0, \"shape\": [8], \"mean\": 0.625}\n";
  ASSERT_OK_AND_ASSIGN(const NameMap map,
                       NameMap::Parse("b\\.(\\d+)\\.q => t.\\1.qk 0/2\n"
                                      "b\\.(\\d+)\\.k => t.\\1.qk 1/2\n"));
  CompareOptions options;
  options.align.map_a = &map;
  const auto c = CompareText(left, right, options);
  EXPECT_THAT(c->result.trouble, IsEmpty());
  EXPECT_EQ(c->result.verdict, Verdict::kIdentical) << Explain(c->result);
}

TEST(CompareTraces, AlignsByOrderButDoesNotCallItAPass) {
  const auto rename = [](Toy& t) {
    t.module = absl::StrReplaceAll(t.module, {{"blocks.", "layers."}});
  };
  const std::string left =
      "{\"module\": \"in\", \"tensor\": \"out\", \"step\": null, "
      "\"abs_mean\": 1.0}\n" +
      ToyTrace();
  const std::string right =
      "{\"module\": \"in\", \"tensor\": \"out\", \"step\": null, "
      "\"abs_mean\": 1.0}\n" +
      ToyTrace(rename);
  const auto c = CompareText(left, right);
  EXPECT_EQ(c->result.verdict, Verdict::kUndecided);
  EXPECT_THAT(c->result.trouble,
              ElementsAre(HasSubstr("48 pairs are aligned by order alone")));
  EXPECT_THAT(SuggestedMap(c->result.alignment.suggestions),
              HasSubstr("^blocks\\.(\\d+)\\.attn$ => layers.\\1.attn\n"));
  CompareOptions fuzzy;
  fuzzy.accept_fuzzy = true;
  EXPECT_EQ(CompareText(left, right, fuzzy)->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, NoticesLayersOffByOne) {
  const auto c = CompareText(
      ToyTrace([](Toy& t) {
        const std::vector<std::string> parts = absl::StrSplit(t.module, '.');
        t.abs_mean = std::exp(std::stoi(parts[1]));
      }),
      ToyTrace([](Toy& t) {
        const std::vector<std::string> parts = absl::StrSplit(t.module, '.');
        t.abs_mean = std::exp(std::stoi(parts[1]) - 1);
      }));
  EXPECT_THAT(c->result.warnings,
              ::testing::Contains(HasSubstr("of layer k+1 of the right one")));
}

TEST(CompareTraces, LintsABufferThatIsReadTooLate) {
  const auto stale = [](Toy& t) { t.abs_mean = 1.25; };
  const auto c = CompareText(ToyTrace(), ToyTrace(stale));
  EXPECT_THAT(c->result.warnings,
              ::testing::Contains(HasSubstr("the right trace has the same "
                                            "numbers for several modules")));
}

TEST(CompareTraces, AControlSaysWhatIsHealthy) {
  const auto drift = [](double share) {
    return [share](Toy& t) {
      if (t.module.find("attn") != std::string::npos) t.abs_mean *= 1 + share;
    };
  };
  // 1 % on every attention: fires; the control shows it does that by itself.
  const std::string left = ToyTrace(), right = ToyTrace(drift(0.01));
  CompareOptions options;
  options.divergence.profile = ThresholdProfile::kFp32;
  EXPECT_EQ(CompareText(left, right, options)->result.verdict,
            Verdict::kDiffer);
  const TraceInput reference = *TraceInput::FromString(left, "r");
  const TraceInput again =
      *TraceInput::FromString(ToyTrace(drift(-0.008)), "c");
  ASSERT_OK_AND_ASSIGN(const ControlLevels control,
                       ReadControl(reference, again, {}));
  options.divergence.control = &control;
  EXPECT_EQ(CompareText(left, right, options)->result.verdict, Verdict::kSame);
}

TEST(CompareTraces, EachToleranceChangesTheAnswer) {
  const std::string left = ToyTrace({}, 12, "null", 1);
  const std::string right = ToyTrace(
      [](Toy& t) {
        if (t.module >= "blocks.8") t.abs_mean *= 1.02;
      },
      12, "null", 2);
  const auto verdict = [&](const CompareOptions& options) {
    return CompareText(left, right, options)->result.verdict;
  };
  EXPECT_EQ(verdict({}), Verdict::kDiffer);
  CompareOptions loose;
  loose.divergence.coherent.jump = 200;
  EXPECT_EQ(verdict(loose), Verdict::kSame);
  loose.divergence.abs_mean_ceiling = 0.015;
  EXPECT_EQ(verdict(loose), Verdict::kDiffer);
}

}  // namespace
}  // namespace firstframe
