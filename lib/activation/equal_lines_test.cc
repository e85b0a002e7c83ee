// Whichever way lines that both traces have are read, the findings are the
// same.

#include <algorithm>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/compare.h"
#include "lib/activation/compare_testing.h"
#include "lib/activation/report.h"

namespace firstframe {
namespace {

using testing::CompareText;
using testing::GoldenTrace;
using testing::Toy;
using testing::ToyTrace;

std::string Describe(const Comparison& c, uint32_t key, int32_t step,
                     absl::string_view verdict) {
  return absl::StrCat(c.names->key(key).module, " ", step, " ", verdict, "\n");
}

constexpr uint16_t kLevelFlags = RowVerdict::kBitsEqual |
                                 RowVerdict::kCoherentHistory |
                                 RowVerdict::kEnergyHistory;

// The verdict on every pair, in their order. Of equal ones not the level
// expected, which is known of rows alone.
std::string VerdictOfEachPair(const Comparison& c) {
  std::string out;
  const Alignment& al = c.alignment;
  size_t run = 0;
  for (size_t i = 0; i <= al.pairs.size(); ++i) {
    for (; run < al.runs.size() && al.run_pairs[run] == i; ++run) {
      al.runs[run].ForEachLine([&](uint32_t key, int32_t step) {
        out += Describe(c, key, step, "exact 0 -1 0 0 0 0");
      });
    }
    if (i == al.pairs.size()) break;
    const RowVerdict& v = c.divergence.rows[i];
    const TraceRow& row = al.a.table.rows[al.pairs[i].a];
    out += Describe(
        c, row.key, row.step,
        absl::StrCat(
            MatchMethodName(al.pairs[i].method), " ", v.coherent, " ", v.energy,
            " ", v.jump(), " ", static_cast<int>(v.reason), " ",
            static_cast<int>(v.hard), " ",
            v.flags & ~(v.Has(RowVerdict::kDiffers) ? RowVerdict::kBitsEqual
                                                    : kLevelFlags)));
  }
  return out;
}

std::string PlacesOf(const Comparison& c, const TraceSide& side,
                     const std::vector<uint32_t>& rows) {
  std::string out;
  for (const uint32_t i : rows) {
    const TraceRow& row = side.table.rows[i];
    out += Describe(c, row.key, row.step, absl::StrCat(row.occurrence));
  }
  return out;
}

// What a report says, but for lints of equal lines, which need their numbers.
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
      << "\nunmatched " << PlacesOf(c, c.alignment.a, c.alignment.unmatched_a)
      << "and " << PlacesOf(c, c.alignment.b, c.alignment.unmatched_b)
      << VerdictOfEachPair(c);
  std::vector<std::string> lines = absl::StrSplit(out.str(), '\n');
  lines.erase(std::remove_if(lines.begin(), lines.end(),
                             [](const std::string& line) {
                               return absl::StrContains(
                                   line, "the same numbers for several");
                             }),
              lines.end());
  return absl::StrJoin(lines, "\n");
}

// Returns whether there were runs.
bool ExpectTheSameHoweverRead(const std::string& a, const std::string& b,
                              CompareOptions options = {}) {
  options.equal_lines = EqualLines::kParsed;
  const std::string full = Everything(CompareText(a, b, options)->result);
  options.equal_lines = EqualLines::kRows;
  EXPECT_EQ(Everything(CompareText(a, b, options)->result), full);
  options.equal_lines = EqualLines::kRuns;
  const auto quick = CompareText(a, b, options);
  EXPECT_EQ(Everything(quick->result), full);
  return !quick->result.alignment.runs.empty();
}

TEST(EqualLines, OfOtherOccurrencesAreNoPair) {
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
  ExpectTheSameHoweverRead(a, b, options);
}

TEST(EqualLines, SkippingChangesNothing) {
  std::mt19937 random(7);
  const auto chance = [&](double p) { return random() % 1000 < 1000 * p; };
  for (int round = 0; round < 150; ++round) {
    const bool has_steps = chance(0.5);
    std::vector<std::string> left;
    for (int step = 0; step < 3; ++step) {
      // Few values, so that lines are equal by chance as well.
      const std::string text = ToyTrace(
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
    ExpectTheSameHoweverRead(absl::StrJoin(left, "\n") + "\n",
                             absl::StrJoin(right, "\n") + "\n", options);
    if (HasFailure()) return;
  }
}

// Traces of `calls` calls whose lines differ here and there only.
std::vector<std::string> LinesOf(int calls, bool has_steps) {
  std::vector<std::string> lines;
  for (int call = 0; call < calls; ++call) {
    const std::string text =
        ToyTrace([&](Toy& toy) { toy.abs_mean += 0.001 * (call % 3); }, 6,
                 has_steps ? absl::StrCat(call / 2) : "null");
    for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(std::string(line));
    }
  }
  return lines;
}

TEST(EqualLines, RunsOfThemChangeNothing) {
  std::mt19937 random(11);
  const auto chance = [&](double p) { return random() % 1000 < 1000 * p; };
  int with_runs = 0;
  for (int round = 0; round < 200; ++round) {
    const bool has_steps = round % 2 == 0;
    const std::vector<std::string> left = LinesOf(20, has_steps);
    std::vector<std::string> right = left;
    const int changes = random() % 5;
    for (int k = 0; k < changes; ++k) {
      const size_t at = random() % right.size();
      // A drift from there on, a single difference, or a line of another place.
      if (chance(0.2)) {
        for (size_t i = at; i < right.size(); ++i) {
          absl::StrReplaceAll({{"\"std\": 1.", "\"std\": 1.1"}}, &right[i]);
        }
      } else if (chance(0.6)) {
        absl::StrReplaceAll({{"\"abs_mean\": 1.", "\"abs_mean\": 1.1"}},
                            &right[at]);
      } else if (chance(0.5)) {
        std::swap(right[at], right[random() % right.size()]);
      } else if (chance(0.5)) {
        right.erase(right.begin() + at);
        right.insert(right.begin() + random() % right.size(), left[at]);
      } else {
        right.resize(at + 1);  // it was stopped
      }
    }
    if (round % 10 == 9) {  // another run is appended to both
      right.insert(right.end(), left.begin(), left.end());
    }
    CompareOptions options;
    options.max_unmatched = round % 4 == 0 ? 1000 : 0;
    with_runs +=
        ExpectTheSameHoweverRead(absl::StrJoin(left, "\n") + "\n",
                                 absl::StrJoin(right, "\n") + "\n", options);
    if (HasFailure()) return;
  }
  EXPECT_GT(with_runs, 100);
}

TEST(EqualLines, RunsKeepTheCountOfPairs) {
  const std::vector<std::string> left = LinesOf(20, false);
  std::vector<std::string> right = left;
  absl::StrReplaceAll({{"\"abs_mean\": 1.", "\"abs_mean\": 9."}}, &right[400]);
  const auto c = CompareText(absl::StrJoin(left, "\n") + "\n",
                             absl::StrJoin(right, "\n") + "\n");
  const Alignment& al = c->result.alignment;
  ASSERT_EQ(al.runs.size(), 2u);
  EXPECT_LT(al.pairs.size(), 100u);
  EXPECT_EQ(al.NumPaired(), 480u);
  ASSERT_TRUE(c->result.divergence.first);
  EXPECT_EQ(al.PairNumber(*c->result.divergence.first), 400u);
  EXPECT_EQ(al.PairNumber(0), 0u);
  EXPECT_EQ(al.PairNumber(al.pairs.size() - 1), 479u - al.runs[1].keys.size());
}

TEST(EqualLines, SkippingGoldenOnesChangesNothing) {
  const std::string golden(GoldenTrace("cpu_fp32").text());
  ExpectTheSameHoweverRead(golden, golden);
  for (const char* other : {"gpu_fp32", "gpu_bf16", "cpu_fp64"}) {
    const std::string text(GoldenTrace(other).text());
    ExpectTheSameHoweverRead(golden, text);
    // The second half is another's.
    const size_t middle = golden.find('\n', golden.size() / 2) + 1;
    const int lines = std::count(golden.begin(), golden.begin() + middle, '\n');
    size_t at = 0;
    for (int i = 0; i < lines; ++i) at = text.find('\n', at) + 1;
    ExpectTheSameHoweverRead(golden,
                             golden.substr(0, middle) + text.substr(at));
  }
}

}  // namespace
}  // namespace firstframe
