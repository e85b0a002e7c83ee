#include "lib/activation/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/python_json.h"
#include "lib/activation/report.h"
#include "lib/testing/html_page.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TraceInput Golden(absl::string_view name) {
  return *TraceInput::Open(
      absl::StrCat("testdata/activation_trace/trace_", name, ".jsonl.gz"));
}

struct Compared {
  TraceInput a, b;
  Comparison result;
};

std::unique_ptr<Compared> Compare(TraceInput a, TraceInput b,
                                  const CompareOptions& options = {}) {
  auto out = std::make_unique<Compared>(
      Compared{std::move(a), std::move(b), Comparison()});
  out->result = *CompareTraces(out->a, out->b, options);
  return out;
}

std::unique_ptr<Compared> CompareText(std::string a, std::string b,
                                      const CompareOptions& options = {}) {
  return Compare(*TraceInput::FromString(std::move(a), "a"),
                 *TraceInput::FromString(std::move(b), "b"), options);
}

std::string FirstOf(const Comparison& c) {
  return c.divergence.first ? DescribePlace(c, *c.divergence.first) : "none";
}

// A trace of a small residual network; `change` edits the values of a record.
struct Toy {
  std::string module, tensor = "out", step = "null", extra;
  double abs_mean = 1, std = 1.2, mean = 0.01;
  std::string shape = "[1, 64, 64]", dtype = "torch.bfloat16";
  bool omit = false;
};
std::string Trace(const std::function<void(Toy&)>& change = {}, int layers = 12,
                  const std::string& step = "null", uint32_t noise_seed = 0) {
  std::mt19937 random(noise_seed);
  std::normal_distribution<double> noise(0, 3e-4);
  std::string text;
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* op : {".norm", ".attn", ".mlp", ""}) {
      Toy toy;
      toy.module = absl::StrCat("blocks.", layer, op);
      toy.step = step;
      toy.abs_mean = 1 + 0.07 * layer + 0.1 * std::string(op).size();
      if (noise_seed != 0) toy.abs_mean *= 1 + noise(random);
      if (change) change(toy);
      if (toy.omit) continue;
      std::string line = absl::StrCat(
          "{\"module\": \"", toy.module, "\", \"tensor\": \"", toy.tensor,
          "\", \"step\": ", toy.step, ", \"abs_mean\": ");
      AppendPythonFloat(static_cast<float>(toy.abs_mean), &line);
      line += ", \"mean\": ";
      AppendPythonFloat(static_cast<float>(toy.mean), &line);
      line += ", \"std\": ";
      AppendPythonFloat(static_cast<float>(toy.std), &line);
      absl::StrAppend(&text, line, ", \"shape\": ", toy.shape,
                      ", \"dtype\": \"", toy.dtype, "\"", toy.extra, "}\n");
    }
  }
  return text;
}

TEST(CompareGolden, Float32OnTwoDevicesIsTheSame) {
  const auto c = Compare(Golden("cpu_fp32"), Golden("gpu_fp32"));
  EXPECT_EQ(c->result.verdict, Verdict::kSame) << Explain(c->result);
  EXPECT_THAT(c->result.trouble, IsEmpty());
  EXPECT_EQ(c->result.alignment.pairs.size(), 461u);
  EXPECT_LT(c->result.divergence.worst_coherent, 1e-6);
}

TEST(CompareGolden, Float32AgainstFloat64IsTheSame) {
  EXPECT_EQ(Compare(Golden("cpu_fp32"), Golden("cpu_fp64"))->result.verdict,
            Verdict::kSame);
}

TEST(CompareGolden, BFloat16DriftsWithinItsFloor) {
  const auto c = Compare(Golden("gpu_fp32"), Golden("gpu_bf16"));
  EXPECT_EQ(c->result.verdict, Verdict::kSame) << Explain(c->result);
  EXPECT_GT(c->result.divergence.worst_coherent, 1e-3);
  // As float32 the drift is a divergence: the floor is what explains it.
  CompareOptions strict;
  strict.divergence.profile = ThresholdProfile::kFp32;
  EXPECT_EQ(
      Compare(Golden("gpu_fp32"), Golden("gpu_bf16"), strict)->result.verdict,
      Verdict::kDiffer);
}

TEST(CompareGolden, NamesTheConvolutionThatWasScaled) {
  for (const char* other : {"cpu_fp32", "gpu_fp32", "cpu_fp64", "gpu_bf16"}) {
    SCOPED_TRACE(other);
    const auto c = Compare(Golden(other), Golden("gpu_fp32_bug_conv1_2pct"));
    EXPECT_EQ(c->result.verdict, Verdict::kDiffer);
    EXPECT_EQ(FirstOf(c->result), "decoder.up_blocks.1.resnets.0.conv1");
    const auto back = Compare(Golden("gpu_fp32_bug_conv1_2pct"), Golden(other));
    EXPECT_EQ(FirstOf(back->result), "decoder.up_blocks.1.resnets.0.conv1");
  }
}

TEST(CompareGolden, StopsEarlyWithTheSameAnswer) {
  CompareOptions options;
  options.first_only = true;
  const auto c =
      Compare(Golden("gpu_fp32"), Golden("gpu_fp32_bug_conv1_2pct"), options);
  EXPECT_EQ(FirstOf(c->result), "decoder.up_blocks.1.resnets.0.conv1");
}

TEST(CompareGolden, ATraceIsIdenticalToItself) {
  for (const char* name : {"cpu_fp32", "gpu_bf16"}) {
    EXPECT_EQ(Compare(Golden(name), Golden(name))->result.verdict,
              Verdict::kIdentical);
  }
  CompareOptions exact;
  exact.divergence.profile = ThresholdProfile::kExact;
  EXPECT_EQ(
      Compare(Golden("cpu_fp32"), Golden("gpu_fp32"), exact)->result.verdict,
      Verdict::kDiffer);
}

TEST(CompareGolden, EveryModuleIsFoundWhenItIsTheFirstToChange) {
  // Property: 2 % on any one record's statistics is named exactly.
  const std::string golden(Golden("cpu_fp32").text());
  const std::vector<std::string> lines =
      absl::StrSplit(golden, '\n', absl::SkipEmpty());
  for (size_t i = 1; i < lines.size(); i += 23) {
    std::vector<std::string> changed = lines;
    for (size_t k = i; k < lines.size(); ++k) {
      const size_t at = lines[k].find("\"abs_mean\": ") + 12;
      const size_t end = lines[k].find(',', at);
      std::string number;
      AppendPythonFloat(
          static_cast<float>(std::stod(lines[k].substr(at, end - at)) * 1.02),
          &number);
      changed[k].replace(at, end - at, number);
    }
    const auto c = CompareText(golden, absl::StrJoin(changed, "\n") + "\n");
    ASSERT_TRUE(c->result.divergence.first) << i;
    EXPECT_EQ(*c->result.divergence.first, i);
  }
}

TEST(CompareTraces, FailsClosed) {
  const std::string trace = Trace();
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
  const auto c = CompareText(Trace(), Trace([](Toy& toy) {
                               toy.omit = toy.module == "blocks.3.attn" ||
                                          toy.module == "blocks.4.attn";
                             }));
  EXPECT_EQ(c->result.verdict, Verdict::kUndecided);
  EXPECT_THAT(c->result.trouble,
              ElementsAre(HasSubstr("2 records missing on the right: "
                                    "blocks.3.attn (1), blocks.4.attn (1)")));
  CompareOptions tolerant;
  tolerant.max_unmatched = 2;
  EXPECT_EQ(CompareText(Trace(), Trace([](Toy& toy) {
                          toy.omit = toy.module == "blocks.3.attn" ||
                                     toy.module == "blocks.4.attn";
                        }),
                        tolerant)
                ->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, HardDifferencesNeedNoTolerance) {
  const auto differ = [](const std::function<void(Toy&)>& change) {
    const auto c = CompareText(Trace(), Trace(change));
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
  EXPECT_EQ(CompareText(Trace(zero), Trace(zero))->result.verdict,
            Verdict::kIdentical);
}

TEST(CompareTraces, InputsThatDifferAreNotBlamedOnTheFirstLayer) {
  const auto c = CompareText(Trace(), Trace([](Toy& t) { t.abs_mean *= 1.5; }));
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
  const auto c = CompareText(Trace(hashes("0a")), Trace(hashes("0b")));
  EXPECT_EQ(FirstOf(c->result), "blocks.6.attn");
  EXPECT_THAT(Explain(c->result),
              HasSubstr("the same values in another order"));
}

TEST(CompareTraces, RunsRanksAndStepsAreChosen) {
  // Two runs appended: steps fall back.
  const std::string two = Trace([](Toy& t) { t.abs_mean *= 3; }, 4, "1") +
                          Trace({}, 4, "0") + Trace({}, 4, "1");
  const std::string one = Trace({}, 4, "0") + Trace({}, 4, "1");
  const auto last = CompareText(two, one);
  EXPECT_EQ(last->result.verdict, Verdict::kIdentical);
  EXPECT_THAT(last->result.warnings,
              ElementsAre(HasSubstr("a holds 2 runs; the last is compared")));
  CompareOptions first;
  first.align.run = "0";
  EXPECT_EQ(CompareText(two, Trace({}, 4, "1"), first)->result.verdict,
            Verdict::kDiffer);
  // Runs without steps show in the counts alone.
  const auto counted =
      CompareText(Trace([](Toy& t) { t.abs_mean *= 3; }) + Trace(), Trace());
  EXPECT_EQ(counted->result.verdict, Verdict::kIdentical);
  EXPECT_THAT(counted->result.warnings,
              ElementsAre(HasSubstr("2 times as often")));
  // One side without steps: by occurrence.
  const auto flat = CompareText(Trace({}, 4) + Trace({}, 4), one);
  EXPECT_EQ(flat->result.verdict, Verdict::kIdentical);
  EXPECT_EQ(flat->result.alignment.pairs[0].method, MatchMethod::kOccurrence);
}

TEST(CompareTraces, MergesRanksAndHalvesOfABatch) {
  std::string ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks += Trace([&](Toy& t) {
      t.shape = "[1, 32, 64]";
      t.extra = absl::StrCat(", \"rank\": ", rank);
    });
  }
  CompareOptions merge;
  merge.align.merge_ranks = true;
  const auto merged = CompareText(ranks, Trace(), merge);
  EXPECT_THAT(merged->result.trouble, IsEmpty());
  EXPECT_EQ(merged->result.verdict, Verdict::kSame) << Explain(merged->result);
  EXPECT_EQ(merged->result.alignment.pairs[0].method, MatchMethod::kMerged);
  // Two calls of half the batch against one of the whole.
  const auto half = [](Toy& t) { t.shape = "[1, 64, 64]"; };
  const auto whole = [](Toy& t) { t.shape = "[2, 64, 64]"; };
  const auto halves = CompareText(Trace(half) + Trace(half), Trace(whole));
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
      Trace();
  const std::string right =
      "{\"module\": \"in\", \"tensor\": \"out\", \"step\": null, "
      "\"abs_mean\": 1.0}\n" +
      Trace(rename);
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
      Trace([](Toy& t) {
        const std::vector<std::string> parts = absl::StrSplit(t.module, '.');
        t.abs_mean = std::exp(std::stoi(parts[1]));
      }),
      Trace([](Toy& t) {
        const std::vector<std::string> parts = absl::StrSplit(t.module, '.');
        t.abs_mean = std::exp(std::stoi(parts[1]) - 1);
      }));
  EXPECT_THAT(c->result.warnings,
              ::testing::Contains(HasSubstr("of layer k+1 of the right one")));
}

TEST(CompareTraces, LintsABufferThatIsReadTooLate) {
  const auto stale = [](Toy& t) { t.abs_mean = 1.25; };
  const auto c = CompareText(Trace(), Trace(stale));
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
  const std::string left = Trace(), right = Trace(drift(0.01));
  CompareOptions options;
  options.divergence.profile = ThresholdProfile::kFp32;
  EXPECT_EQ(CompareText(left, right, options)->result.verdict,
            Verdict::kDiffer);
  const TraceInput reference = *TraceInput::FromString(left, "r");
  const TraceInput again = *TraceInput::FromString(Trace(drift(-0.008)), "c");
  ASSERT_OK_AND_ASSIGN(const ControlLevels control,
                       ReadControl(reference, again, {}));
  options.divergence.control = &control;
  EXPECT_EQ(CompareText(left, right, options)->result.verdict, Verdict::kSame);
}

TEST(CompareTraces, EachToleranceChangesTheAnswer) {
  const std::string left = Trace({}, 12, "null", 1);
  const std::string right = Trace(
      [](Toy& t) {
        if (t.module >= "blocks.8") t.abs_mean *= 1.02;
      },
      12, "null", 2);
  const auto verdict = [&](const CompareOptions& options) {
    return CompareText(left, right, options)->result.verdict;
  };
  EXPECT_EQ(verdict({}), Verdict::kDiffer);
  CompareOptions loose;
  loose.divergence.coherent_jump = 200;
  EXPECT_EQ(verdict(loose), Verdict::kSame);
  loose.divergence.abs_mean_ceiling = 0.015;
  EXPECT_EQ(verdict(loose), Verdict::kDiffer);
}

// What a report says, but for what equal lines leave unsaid: the level expected
// of rows that are equal anyway, and lints of their numbers.
std::string Everything(const Comparison& c) {
  std::ostringstream out;
  ReportOptions options;
  options.rows = 1000;
  WriteText(c, options, out);
  WriteJsonl(c, options, out);
  out << Explain(c) << "\n";
  const Divergence& d = c.divergence;
  out << static_cast<int>(c.verdict) << " " << d.num_different << " "
      << d.num_fired << " " << d.num_compared << " " << d.worst_coherent
      << " unmatched " << absl::StrJoin(c.alignment.unmatched_a, ",") << " and "
      << absl::StrJoin(c.alignment.unmatched_b, ",") << "\n";
  for (size_t i = 0; i < d.rows.size(); ++i) {
    const RowPair& pair = c.alignment.pairs[i];
    const RowVerdict& v = d.rows[i];
    out << pair.a << "=" << pair.b << " " << static_cast<int>(pair.method)
        << " " << v.coherent << " " << v.energy << " " << v.jump << " "
        << static_cast<int>(v.reason) << " " << static_cast<int>(v.hard) << " "
        << (v.flags & ~RowVerdict::kBitsEqual) << "\n";
  }
  std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const std::string& line) {
                               return absl::StrContains(
                                   line, "the same numbers for several");
                             }),
              lines.end());
  return absl::StrJoin(lines, "\n");
}

void ExpectSkippingChangesNothing(const std::string& a, const std::string& b,
                                  CompareOptions options = {}) {
  options.skip_equal_lines = true;
  const auto quick = CompareText(a, b, options);
  options.skip_equal_lines = false;
  const auto full = CompareText(a, b, options);
  ASSERT_EQ(Everything(quick->result), Everything(full->result))
      << "left:\n"
      << a << "right:\n"
      << b;
}

TEST(CompareTraces, EqualLinesOfOtherOccurrencesAreNoPair) {
  const auto line = [](absl::string_view module, int value) {
    return absl::StrCat("{\"module\": \"", module,
                        "\", \"tensor\": \"out\", \"step\": null, "
                        "\"abs_mean\": ",
                        value, ".0, \"dtype\": \"torch.float32\"}\n");
  };
  // The lines of x = 2 are equal and at one place, but are the second and the
  // third record of x: the second ones differ.
  const std::string a = line("x", 1) + line("y", 5) + line("x", 2) +
                        line("x", 3) + line("z", 1) + line("z", 1);
  const std::string b = line("x", 1) + line("x", 9) + line("x", 2) +
                        line("x", 3) + line("z", 1) + line("z", 1);
  CompareOptions options;
  options.max_unmatched = 2;
  const auto c = CompareText(a, b, options);
  EXPECT_EQ(c->result.divergence.num_different, 2);
  EXPECT_EQ(c->result.verdict, Verdict::kDiffer);
  ExpectSkippingChangesNothing(a, b, options);
}

TEST(CompareTraces, SkippingEqualLinesChangesNothing) {
  std::mt19937 random(7);
  const auto chance = [&](double p) { return random() % 1000 < 1000 * p; };
  for (int round = 0; round < 150; ++round) {
    const bool has_steps = chance(0.5);
    std::vector<std::string> left;
    for (int step = 0; step < 3; ++step) {
      // Few values, so that lines are equal by chance as well.
      const std::string text = Trace(
          [&](Toy& toy) {
            if (round % 2 == 0) toy.abs_mean = 1 + 0.25 * (random() % 3);
          },
          5, has_steps ? absl::StrCat(step) : "null");
      for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
        left.push_back(std::string(line));
      }
    }
    std::vector<std::string> right;
    for (const std::string& line : left) {
      if (chance(0.02)) continue;
      right.push_back(line);
      if (chance(0.02)) right.push_back(line);
      if (chance(0.1)) {
        absl::StrReplaceAll({{"\"abs_mean\": 1.", "\"abs_mean\": 1.1"}},
                            &right.back());
      }
    }
    if (round % 3 == 1) std::shuffle(right.begin(), right.end(), random);
    if (round % 3 == 2) {
      for (int k = 0; k < 6; ++k) {
        std::swap(right[random() % right.size()],
                  right[random() % right.size()]);
      }
    }
    CompareOptions options;
    options.max_unmatched = round % 4 == 0 ? 1000 : 0;
    ExpectSkippingChangesNothing(absl::StrJoin(left, "\n") + "\n",
                                 absl::StrJoin(right, "\n") + "\n", options);
    if (HasFatalFailure()) return;
  }
}

TEST(CompareGolden, SkippingEqualLinesChangesNothing) {
  const std::string golden(Golden("cpu_fp32").text());
  ExpectSkippingChangesNothing(golden, golden);
  for (const char* other : {"gpu_fp32", "gpu_bf16", "cpu_fp64"}) {
    const std::string text(Golden(other).text());
    ExpectSkippingChangesNothing(golden, text);
    // The second half is another's.
    const size_t middle = golden.find('\n', golden.size() / 2) + 1;
    const int lines = std::count(golden.begin(), golden.begin() + middle, '\n');
    size_t at = 0;
    for (int i = 0; i < lines; ++i) at = text.find('\n', at) + 1;
    ExpectSkippingChangesNothing(golden,
                                 golden.substr(0, middle) + text.substr(at));
  }
}

TEST(Report, JsonlAndGithubAndText) {
  const auto c = CompareText(Trace(), Trace([](Toy& t) {
                               if (t.module == "blocks.6.attn") t.shape = "[9]";
                             }));
  std::ostringstream jsonl, github, text;
  WriteJsonl(c->result, {.rows = 10, .all_rows = true}, jsonl);
  EXPECT_THAT(jsonl.str(), StartsWith("{\"kind\":\"summary\",\"schema\":"
                                      "\"firstframe.trace_diff/1\""));
  EXPECT_THAT(jsonl.str(), HasSubstr("{\"kind\":\"divergence\",\"pair\":25,"
                                     "\"module\":\"blocks.6.attn\""));
  const std::string lines = jsonl.str();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2 + 48);
  WriteGithub(c->result, github);
  EXPECT_THAT(github.str(), StartsWith("::error title=First divergence::"));
  WriteText(c->result, {}, text);
  EXPECT_THAT(text.str(),
              StartsWith("differ: first divergence at blocks.6.attn\n"));
}

TEST(Report, HostileNamesStayText) {
  const auto c = CompareText(
      "{\"module\": \"<script>bad()</script>\\ud800\\u001b[31m\", \"tensor\": "
      "\"out\", \"step\": null, \"abs_mean\": 1.0}\n",
      "{\"module\": \"<script>bad()</script>\\ud800\\u001b[31m\", \"tensor\": "
      "\"out\", \"step\": null, \"abs_mean\": 2.0}\n");
  std::ostringstream text, jsonl;
  WriteText(c->result, {}, text);
  EXPECT_THAT(text.str(), ::testing::Not(HasSubstr("\x1b")));
  const std::string html = RenderHtml(c->result);
  EXPECT_THAT(html, ::testing::Not(HasSubstr("<script>bad()")));
}

TEST(Report, PageShowsTheFirstDivergence) {
  const auto c = Compare(Golden("gpu_fp32"), Golden("gpu_fp32_bug_conv1_2pct"));
  const testing::TempDir dir;
  const std::string html = RenderHtml(c->result);
  if (const char* outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) {
    std::ofstream(std::string(outputs) + "/page.html") << html;
  }
  const auto page = testing::LoadHtmlPage(dir.Write("page.html", html));
  if (!page.has_value()) GTEST_SKIP() << "chromium is not installed";
  EXPECT_THAT(page->problems, IsEmpty());
  EXPECT_THAT(page->dom, HasSubstr("verdict differ"));
  EXPECT_THAT(page->dom,
              HasSubstr("decoder.up_blocks.1.resnets.0.conv1 is the first"));
  EXPECT_THAT(page->dom, HasSubstr("461</b><span>pairs"));
  EXPECT_THAT(page->dom, HasSubstr("class=\"fired\""));
}

}  // namespace
}  // namespace firstframe
