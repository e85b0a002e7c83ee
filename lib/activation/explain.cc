#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/activation/compare.h"
#include "lib/activation/dtype_precision.h"
#include "lib/activation/pair_evidence.h"
#include "lib/activation/pair_metrics.h"

namespace firstframe {
namespace {

const TraceRow& LeftRow(const Comparison& c, size_t pair) {
  return c.alignment.a.table.rows[c.alignment.pairs[pair].a];
}

const TraceRow& RightRow(const Comparison& c, size_t pair) {
  return c.alignment.b.table.rows[c.alignment.pairs[pair].b];
}

std::string WhyThereIsNone(const Comparison& c) {
  const Divergence& d = c.divergence;
  if (c.verdict == Verdict::kUndecided && !c.trouble.empty()) {
    return absl::StrCat("no divergence was found, but the answer is open: ",
                        c.trouble[0]);
  }
  if (c.verdict == Verdict::kIdentical) {
    return absl::StrCat("all ", c.alignment.NumPaired(),
                        " pairs are equal in everything they record");
  }
  std::string text = absl::StrFormat(
      "%d of %d pairs differ, and none stands above what precision and depth "
      "explain; the statistics differ by at most %s",
      d.num_different, c.alignment.NumPaired(),
      d.worst_coherent > 0 ? ErrorShare(d.worst_coherent)
                           : "their own precision");
  if (d.worst_energy >= 0) {
    absl::StrAppend(&text, " and the elements by ", ErrorShare(d.worst_energy));
  }
  if (d.first_bit_difference) {
    absl::StrAppend(&text, "; the first bit differs at ",
                    DescribePlace(c, *d.first_bit_difference));
  }
  return text;
}

// "is the first to jump: its elements moved by 9.6 %, against 1.1 % expected".
void AddReason(const Comparison& c, size_t i, const PairMetrics& m,
               std::string* text) {
  const RowVerdict& v = c.divergence.rows[i];
  const RowPair& pair = c.alignment.pairs[i];
  if (v.reason == FireReason::kHard) {
    absl::StrAppend(
        text, "is the first to differ: ",
        DescribeHard(m, c.alignment.a, pair.a, c.alignment.b, pair.b));
    return;
  }
  const bool has_history =
      v.Has(v.Has(RowVerdict::kByEnergy) ? RowVerdict::kEnergyHistory
                                         : RowVerdict::kCoherentHistory);
  absl::StrAppend(
      text,
      v.reason == FireReason::kCeiling ? "first passes a ceiling: its "
                                       : "is the first to jump: its ",
      v.Has(RowVerdict::kByEnergy) ? "elements" : "statistics", " moved by ",
      ErrorShare(v.error()), ", against ", ErrorShare(v.expected()),
      has_history ? " expected at this depth"
                  : " expected here without a history",
      " (x", absl::StrFormat("%.3g", v.jump()), ")");
  const std::string evidence = DescribeEvidence(
      EvidenceOf(c.alignment.a, pair.a, c.alignment.b, pair.b));
  if (!evidence.empty()) absl::StrAppend(text, " [", evidence, "]");
  const std::string& dtype = c.names->dtype(LeftRow(c, i).dtype);
  if (LeftRow(c, i).Kind(kMax) != ValueKind::kNumber) return;
  const auto ulps =
      UlpsApart(LeftRow(c, i).values[kMax], RightRow(c, i).values[kMax], dtype);
  if (ulps && std::isfinite(*ulps) && *ulps >= 1) {
    absl::StrAppend(text, "; the maximum by ", absl::StrFormat("%.3g", *ulps),
                    " ulp of ", dtype);
  }
}

// What is known of the inputs of the call that pair `i` is of.
void AddInputs(const Comparison& c, size_t i, std::string* text) {
  const Divergence& d = c.divergence;
  const RowVerdict& v = d.rows[i];
  if (v.Has(RowVerdict::kIsInput)) {
    absl::StrAppend(text, d.inputs_differ
                              ? "; it is an input, and only inputs come before "
                                "it: the inputs differ"
                              : "; it is an input: what computes it from the "
                                "outputs before is at fault");
    return;
  }
  const std::vector<size_t> inputs = InputPairs(c, i);
  if (!inputs.empty()) {
    size_t worst = inputs[0];
    for (const size_t input : inputs) {
      if (d.rows[input].error() > d.rows[worst].error()) worst = input;
    }
    absl::StrAppend(text, "; its inputs are inside, moved by at most ",
                    ErrorShare(d.rows[worst].error()), ", so it adds ",
                    ErrorShare(AddedError(c, i).value_or(v.error())));
  } else if (d.inputs_differ) {
    absl::StrAppend(text,
                    "; it is the first record of all, so the inputs differ, or "
                    "this module does");
  }
}

}  // namespace

std::string DescribePlace(const Comparison& c, size_t pair) {
  const TraceRow& row = LeftRow(c, pair);
  const TraceNames::Key& key = c.names->key(row.key);
  std::string place = key.module;
  if (key.tensor != "out") absl::StrAppend(&place, " ", key.tensor);
  if (row.step != kNoStep) absl::StrAppend(&place, " (step ", row.step, ")");
  if (row.occurrence > 0) {
    absl::StrAppend(&place, " (occurrence ", row.occurrence, ")");
  }
  return place;
}

std::vector<size_t> InputPairs(const Comparison& c, size_t pair) {
  std::vector<size_t> inputs;
  if (!c.divergence.has_inputs) return inputs;
  const TraceRow& row = LeftRow(c, pair);
  const std::string& module = c.names->key(row.key).module;
  // Back to the module's output of the call before.
  for (size_t i = pair; i-- > 0;) {
    const TraceRow& other = LeftRow(c, i);
    if (c.names->key(other.key).module != module) continue;
    if (other.step != row.step || other.occurrence != row.occurrence) break;
    if (c.divergence.rows[i].Has(RowVerdict::kIsInput)) inputs.push_back(i);
  }
  return inputs;
}

std::optional<double> AddedError(const Comparison& c, size_t pair) {
  const RowVerdict& v = c.divergence.rows[pair];
  if (v.Has(RowVerdict::kIsInput)) return std::nullopt;
  const std::vector<size_t> inputs = InputPairs(c, pair);
  if (inputs.empty()) return std::nullopt;
  double inherited = 0;
  for (const size_t input : inputs) {
    const RowVerdict& in = c.divergence.rows[input];
    inherited =
        std::max<double>(inherited, v.energy >= 0 ? in.energy : in.coherent);
  }
  const double own = v.energy >= 0 ? v.energy : v.coherent;
  return std::sqrt(std::max(0.0, own * own - inherited * inherited));
}

std::string Explain(const Comparison& c) {
  const Divergence& d = c.divergence;
  if (!d.first) return WhyThereIsNone(c);
  const size_t i = *d.first;
  const RowVerdict& v = d.rows[i];
  const RowPair& pair = c.alignment.pairs[i];
  const PairMetrics m =
      ComparePair(c.alignment.a, pair.a, c.alignment.b, pair.b);
  std::string text = absl::StrCat(DescribePlace(c, i), " ");
  AddReason(c, i, m, &text);
  AddInputs(c, i, &text);
  if (const uint64_t before = c.alignment.PairNumber(i); before > 0) {
    absl::StrAppend(&text, "; the ", before, before == 1 ? " pair" : " pairs",
                    " before it stay inside");
  }
  if (v.Has(RowVerdict::kConfirmed)) {
    absl::StrAppend(&text, "; confirmed downstream");
  } else if (v.Has(RowVerdict::kIsolated)) {
    absl::StrAppend(&text, "; isolated: what follows is at its usual level");
  } else {
    absl::StrAppend(&text, "; too few records follow to confirm it");
  }
  if (!v.Has(RowVerdict::kBitsDiffer) && v.reason != FireReason::kHard &&
      d.first_bit_difference) {
    absl::StrAppend(&text, "; the first bit differs at ",
                    DescribePlace(c, *d.first_bit_difference));
  }
  return text;
}

}  // namespace firstframe
