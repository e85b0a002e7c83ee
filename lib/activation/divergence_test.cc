// The rule of docs/trace_diff.md on traces made for one clause each.

#include "lib/activation/divergence.h"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare_testing.h"

namespace firstframe {
namespace {

using testing::CompareText;
using ::testing::ElementsAre;
using testing::FirstOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Row {
  std::string module, tensor = "out";
  int step = -1;  // -1: null
  double abs_mean = 1, size = 1;
  std::string extra;
};

// One record; `size` scales every number.
std::string Line(const Row& row) {
  return absl::StrFormat(
      "{\"module\": \"%s\", \"tensor\": \"%s\", \"step\": %s, \"abs_mean\": "
      "%.9g, \"mean\": %.9g, \"std\": %.9g, \"shape\": [1, 4096], \"dtype\": "
      "\"torch.bfloat16\"%s}\n",
      row.module, row.tensor, row.step < 0 ? "null" : absl::StrCat(row.step),
      row.abs_mean * row.size, 0.01 * row.size, 1.2 * row.size, row.extra);
}

// Errors of a model with inputs: by row, of which `visit` sees each.
std::string TraceWithInputs(const std::function<void(Row&)>& change,
                            int steps = 1, int blocks = 12) {
  std::string text;
  const auto add = [&](Row row) {
    if (change) change(row);
    text += Line(row);
  };
  for (int step = steps == 1 ? -1 : 0; step < steps - (steps == 1); ++step) {
    for (int block = 0; block < blocks; ++block) {
      for (const char* op : {"norm", "attn", "mlp"}) {
        const std::string module = absl::StrCat("blocks.", block, ".", op);
        add({.module = module, .tensor = "in[0]", .step = step});
        add({.module = module, .step = step, .abs_mean = 1.1 + 0.01 * block});
      }
    }
  }
  return text;
}

bool IsAtOrBehind(const Row& row, int block) {
  return std::stoi(row.module.substr(7)) >= block;
}

TEST(Inputs, AnInputThatDiffersFirstIsNamed) {
  // What computes attn's input from norm's output is not recorded, and wrong.
  const auto c = CompareText(
      TraceWithInputs({}), TraceWithInputs([](Row& row) {
        if (IsAtOrBehind(row, 5) && (row.module != "blocks.5.norm")) {
          row.abs_mean *= 1.04;
        }
      }));
  EXPECT_EQ(FirstOf(c->result), "blocks.5.attn in[0]");
  EXPECT_TRUE(c->result.divergence.has_inputs);
  EXPECT_FALSE(c->result.divergence.inputs_differ);
  EXPECT_GT(c->result.divergence.num_inherited, 0);
  const std::string text = Explain(c->result);
  EXPECT_THAT(text, HasSubstr("it is an input: what computes it"));
}

TEST(Inputs, GoodInputsBadOutputBlameTheModule) {
  const auto c = CompareText(
      TraceWithInputs({}), TraceWithInputs([](Row& row) {
        const bool before =
            row.module == "blocks.5.norm" ||
            (row.module == "blocks.5.attn" && row.tensor == "in[0]");
        if (IsAtOrBehind(row, 5) && !before) row.abs_mean *= 1.04;
      }));
  EXPECT_EQ(FirstOf(c->result), "blocks.5.attn");
  const std::string text = Explain(c->result);
  EXPECT_THAT(text, HasSubstr("its inputs are inside, moved by at most 0, so "
                              "it adds 3.85 %"));
}

TEST(Inputs, AreWhatDiffersWhenNothingElseComesBefore) {
  const auto c =
      CompareText(TraceWithInputs({}),
                  TraceWithInputs([](Row& row) { row.abs_mean *= 1.04; }));
  EXPECT_EQ(FirstOf(c->result), "blocks.0.norm in[0]");
  EXPECT_TRUE(c->result.divergence.inputs_differ);
  EXPECT_THAT(Explain(c->result), HasSubstr("the inputs differ"));
}

// Without an error to start from, a block's floor does not grow with depth.
TEST(Inputs, CleanOnesLowerTheLimit) {
  const auto bug = [](double factor) {
    return [factor](Row& row) {
      if (row.module == "blocks.11.mlp" && row.tensor == "out") {
        row.abs_mean *= factor;
      }
    };
  };
  const auto with =
      CompareText(TraceWithInputs({}), TraceWithInputs(bug(1.005)));
  EXPECT_EQ(FirstOf(with->result), "blocks.11.mlp");
  const auto outputs_alone = [](const std::function<void(Row&)>& change) {
    std::string text;
    for (const auto line : absl::StrSplit(TraceWithInputs(change), '\n')) {
      if (!absl::StrContains(line, "in[0]")) absl::StrAppend(&text, line, "\n");
    }
    return text;
  };
  const auto without =
      CompareText(outputs_alone({}), outputs_alone(bug(1.005)));
  EXPECT_EQ(FirstOf(without->result), "none");
  CompareOptions grafted;
  grafted.divergence.is_grafted = true;
  EXPECT_EQ(
      FirstOf(CompareText(outputs_alone({}), outputs_alone(bug(1.005)), grafted)
                  ->result),
      "blocks.11.mlp");
}

// Moves a module's input and output alike, differently at each step.
double NoiseOf(const Row& row) {
  std::mt19937 random(
      std::hash<std::string>()(absl::StrCat(row.module, " ", row.step)));
  return std::normal_distribution<double>(0, 1e-3)(random);
}

TEST(Steps, ABugThatComesUpLaterIsNamedWithItsStep) {
  const auto c = CompareText(TraceWithInputs({}, 5),
                             TraceWithInputs(
                                 [](Row& row) {
                                   row.abs_mean *= 1 + NoiseOf(row);
                                   const bool has_bug =
                                       row.step == 2 && row.tensor == "out" &&
                                       row.module == "blocks.6.attn";
                                   if (has_bug) row.abs_mean *= 1.045;
                                 },
                                 5));
  EXPECT_EQ(FirstOf(c->result), "blocks.6.attn (step 2)");
}

TEST(Steps, DriftThatDoublesAtEachIsNoBug) {
  const auto c = CompareText(TraceWithInputs({}, 5),
                             TraceWithInputs(
                                 [](Row& row) {
                                   row.abs_mean *=
                                       1 + std::pow(2, row.step) * NoiseOf(row);
                                 },
                                 5));
  EXPECT_EQ(FirstOf(c->result), "none");
}

TEST(NegligibleTensors, AreJudgedByTheUsualSize) {
  // Block 7's attention is 1e-8 of the others', and noise.
  const auto tiny = [](double factor, double noise) {
    return [factor, noise](Row& row) {
      row.abs_mean *= 1 + noise * NoiseOf(row);
      if (row.module != "blocks.7.attn" || row.tensor != "out") return;
      row.size = 1e-8;
      row.abs_mean *= factor;
    };
  };
  const auto c =
      CompareText(TraceWithInputs(tiny(1, 0)), TraceWithInputs(tiny(1.3, 1)));
  EXPECT_EQ(FirstOf(c->result), "none") << Explain(c->result);
  EXPECT_EQ(c->result.verdict, Verdict::kSame);
  // A layer that is dead on one side is not negligible.
  const auto dead =
      CompareText(TraceWithInputs({}), TraceWithInputs(tiny(1, 0)));
  EXPECT_EQ(FirstOf(dead->result), "blocks.7.attn");
}

// A float32 norm between bfloat16 layers carries their rounding.
TEST(Dtypes, AFinerRowTakesOverTheRoundingBeforeIt) {
  const auto trace = [](double drift, bool all_float32) {
    std::string text;
    for (const auto line : absl::StrSplit(TraceWithInputs([&](Row& row) {
                                            if (row.module == "blocks.2.norm") {
                                              row.abs_mean *= 1 + drift;
                                            }
                                          }),
                                          '\n', absl::SkipEmpty())) {
      std::string changed(line);
      if (all_float32 || absl::StrContains(changed, ".norm")) {
        absl::StrReplaceAll({{"bfloat16", "float32"}}, &changed);
      }
      absl::StrAppend(&text, changed, "\n");
    }
    return text;
  };
  EXPECT_EQ(FirstOf(CompareText(trace(0, false), trace(3e-5, false))->result),
            "none");
  EXPECT_EQ(FirstOf(CompareText(trace(0, true), trace(3e-5, true))->result),
            "blocks.2.norm in[0]");
}

TEST(Dtypes, ChangesAlongTheChainAreListed) {
  std::string right;
  for (const auto line :
       absl::StrSplit(TraceWithInputs({}), '\n', absl::SkipEmpty())) {
    std::string text(line);
    if (absl::StrContains(text, "blocks.4.") ||
        absl::StrContains(text, "blocks.9.attn")) {
      absl::StrReplaceAll({{"bfloat16", "float32"}}, &text);
    }
    absl::StrAppend(&right, text, "\n");
  }
  const auto c = CompareText(TraceWithInputs({}), right);
  const auto& changes = c->result.divergence.dtype_changes;
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].pairs, 8);
  EXPECT_EQ(DescribePlace(c->result, changes[0].first), "blocks.4.norm in[0]");
}

TEST(Lints, SayWhatContradictsItself) {
  const std::string ok = Line({.module = "a"});
  const std::string half =
      R"({"module": "half", "tensor": "out", "step": 0, "abs_mean": 0.334, )"
      R"("sum": 256.5, "mean": 0.334, "min": 1.0, "max": 1.0, "shape": [768]})"
      "\n";
  const std::string shard =
      R"({"module": "shard", "tensor": "out", "step": 0, "abs_mean": 1.0, )"
      R"("sum": 50.0, "mean": 0.5, "min": -2.0, "max": 2.0, "shape": [200]})"
      "\n";
  const auto c = CompareText(ok + half + shard, ok + half + shard,
                             {.equal_lines = EqualLines::kParsed});
  std::vector<std::string> texts;
  for (const CaptureLint& lint : c->result.divergence.lints) {
    if (lint.on_left) texts.push_back(DescribeLint(lint));
  }
  EXPECT_THAT(
      texts,
      ElementsAre(HasSubstr("means outside of [min, max] in 1 records, first "
                            "of half"),
                  HasSubstr("in 1 records, first of shard")));
  const auto healthy = CompareText(TraceWithInputs({}), TraceWithInputs({}),
                                   {.equal_lines = EqualLines::kParsed});
  for (const CaptureLint& lint : healthy->result.divergence.lints) {
    EXPECT_THAT(DescribeLint(lint), HasSubstr("same numbers"));
  }
}

TEST(DetectionLimit, IsWhatFires) {
  // An error just above the limit that a healthy run states is found, one just
  // below is not.
  double limit = 0, error = 0;
  const auto build = [&](double factor) {
    std::mt19937 again(3);
    std::normal_distribution<double> same(0, 1e-3);
    return TraceWithInputs([&](Row& row) {
      row.abs_mean *= 1 + same(again);
      if (row.module == "blocks.8.attn" && row.tensor == "out") {
        row.abs_mean *= factor;
      }
    });
  };
  const std::string left = TraceWithInputs({});
  const auto healthy = CompareText(left, build(1));
  for (size_t i = 0; i < healthy->result.divergence.rows.size(); ++i) {
    if (DescribePlace(healthy->result, i) != "blocks.8.attn") continue;
    const RowVerdict& v = healthy->result.divergence.rows[i];
    limit = *DetectionLimit(v, kCoherent, healthy->result.divergence.options);
    error = v.coherent;
  }
  ASSERT_GT(limit, error);
  // Isolated jumps must be twice as large; two rows behind confirm this one.
  const auto has_jump = [&](double factor) {
    const auto c = CompareText(left, build(factor));
    return FirstOf(c->result) != "none" ||
           c->result.divergence.num_isolated > 0;
  };
  EXPECT_FALSE(has_jump(1 + 0.5 * (limit - error)));
  EXPECT_TRUE(has_jump(1 + 1.2 * (limit + error)));
}

}  // namespace
}  // namespace firstframe
