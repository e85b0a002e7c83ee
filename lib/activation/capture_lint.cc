#include "lib/activation/capture_lint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr int kSameRows = 3;  // fewer may be chance, or one tensor handed on
// Of a float32 mean of numbers that are all the same.
constexpr double kMeanSlack = 1e-3;
// Sums and means are rounded; a shard is at most half of the tensor.
constexpr double kNumelSlack = 0.3;
// A mean that is nearly 0 says nothing about how many there are.
constexpr double kTellingMean = 0.05;

bool AreNumbers(const TraceRow& row, std::initializer_list<TraceValue> values) {
  for (const TraceValue value : values) {
    if (row.Kind(value) != ValueKind::kNumber) return false;
  }
  return true;
}

}  // namespace

void CaptureLinter::Contradiction::Count(uint32_t first_tau,
                                         uint32_t first_key) {
  if (rows++ > 0) return;
  tau = first_tau;
  key = first_key;
}

void CaptureLinter::LookForRepeats(const TraceRow& row, State* state) {
  if ((row.flags & TraceRow::kHasOdd) != 0 || row.values[kAbsMean] == 0) {
    state->has_values = false;
    return;
  }
  const bool same =
      state->has_values && row.key != state->key &&
      std::memcmp(&row.values, &state->values, sizeof(row.values)) == 0;
  state->run = same ? state->run + 1 : 1;
  if (state->run > state->longest) {
    state->longest = state->run;
    state->longest_key = row.key;
  }
  state->values = row.values;
  state->key = row.key;
  state->has_values = true;
}

void CaptureLinter::LookForContradictions(const TraceRow& row, uint32_t tau) {
  if (!AreNumbers(row, {kMean})) return;
  const double mean = row.values[kMean];
  if (AreNumbers(row, {kMin, kMax})) {
    const double low = row.values[kMin], high = row.values[kMax];
    const double slack = kMeanSlack * std::max(std::abs(low), std::abs(high));
    if (mean < low - slack || mean > high + slack) {
      mean_outside_.Count(tau, row.key);
    }
  }
  const double numel = side_.names->numel(row.shape);
  if (numel > 1 && AreNumbers(row, {kSum, kAbsMean}) &&
      std::abs(mean) > kTellingMean * row.values[kAbsMean]) {
    const double implied = row.values[kSum] / mean;
    if (std::abs(implied - numel) > kNumelSlack * numel) {
      other_numel_.Count(tau, row.key);
    }
  }
}

void CaptureLinter::Look(uint32_t index, uint32_t tau) {
  const TraceRow& row = side_.table.rows[index];
  if ((row.flags & TraceRow::kUnread) != 0) {
    Forget(tau);
    return;
  }
  if (row.Kind(kAbsMean) == ValueKind::kNumber) {
    LookForRepeats(row, &states_[tau]);
  } else {
    Forget(tau);
  }
  LookForContradictions(row, tau);
}

std::vector<CaptureLint> CaptureLinter::Finish(
    const std::vector<std::string>& templates) const {
  std::vector<CaptureLint> lints;
  const auto add = [&](CaptureFault fault, uint32_t tau, uint32_t key,
                       int64_t rows) {
    lints.push_back(
        {fault, templates[tau], side_.names->key(key).module, rows, on_left_});
  };
  for (uint32_t tau = 0; tau < states_.size(); ++tau) {
    const State& state = states_[tau];
    if (state.longest < kSameRows) continue;
    add(CaptureFault::kSameNumbers, tau, state.longest_key, state.longest);
  }
  for (const auto& [fault, found] :
       {std::pair(CaptureFault::kMeanOutside, &mean_outside_),
        {CaptureFault::kOtherNumel, &other_numel_}}) {
    if (found->rows > 0) add(fault, found->tau, found->key, found->rows);
  }
  return lints;
}

std::string DescribeLint(const CaptureLint& lint) {
  const absl::string_view side = lint.on_left ? "left" : "right";
  switch (lint.fault) {
    case CaptureFault::kSameNumbers:
      return absl::StrCat(
          "the ", side, " trace has the same numbers for several modules of '",
          lint.template_name,
          "': a buffer that was read too late, or a replayed graph?");
    case CaptureFault::kMeanOutside:
      return absl::StrCat("the ", side,
                          " trace has means outside of [min, max]"
                          " in ",
                          lint.rows, " records, first of ", lint.module,
                          ": statistics reduced in half precision?");
    case CaptureFault::kOtherNumel:
      return absl::StrCat("the ", side,
                          " trace has sums and means of fewer or more elements "
                          "than the shape holds in ",
                          lint.rows, " records, first of ", lint.module,
                          ": statistics of a shard under the whole's shape?");
  }
  return "";
}

}  // namespace firstframe
