// Compares two traces from bytes to verdict: what tools/trace_diff does.

#ifndef LIB_ACTIVATION_COMPARE_H_
#define LIB_ACTIVATION_COMPARE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/align.h"
#include "lib/activation/divergence.h"
#include "lib/activation/trace_input.h"
#include "lib/activation/trace_pair.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

struct CompareOptions {
  AlignOptions align;
  DivergenceOptions divergence;
  bool lenient = false;       // damage in a file does not spoil the verdict
  bool accept_fuzzy = false;  // pairs aligned by order count as a pass
  int64_t max_unmatched = 0;  // records without counterpart, both sides
  // Stop at the first confirmed divergence, having read little more than the
  // prefixes that hold it. Counts are then those of the prefixes.
  bool first_only = false;
  // Lines that both files have at the same place are known to be equal.
  // Findings are the same whichever way they are read, but for capture lints of
  // such lines and the usual size of their tensors, which need their numbers
  // (kParsed). Reports of every single
  // pair want kRows: long runs have no pairs of their own.
  EqualLines equal_lines = EqualLines::kRuns;
};

enum class Verdict {
  kIdentical,  // every pair equal to the bit, as far as the records tell
  kSame,       // inside what precision and depth explain
  kDiffer,
  kUndecided,  // trouble: see `trouble`
};

struct Comparison {
  std::unique_ptr<TraceNames> names;
  Alignment alignment;
  Divergence divergence;
  Verdict verdict = Verdict::kUndecided;
  // Why the answer cannot be trusted: damage, nothing in common, records
  // without counterpart, fuzzy pairs. Empty: it can.
  std::vector<std::string> trouble;
  std::vector<std::string> warnings;
  bool is_prefix = false;  // first_only stopped before the ends
};

// Reads, aligns and judges. The result borrows the inputs' text. Errors as
// AlignTraces; damage and mismatches are part of the result.
absl::StatusOr<Comparison> CompareTraces(const TraceInput& a,
                                         const TraceInput& b,
                                         const CompareOptions& options);

// Returns the levels of a healthy pair, for DivergenceOptions::control.
absl::StatusOr<ControlLevels> ReadControl(const TraceInput& reference,
                                          const TraceInput& control,
                                          const AlignOptions& options);

// "module" or "module out[1]", with " (step 3)" and " (occurrence 2)" where
// they say something.
std::string DescribePlace(const Comparison& comparison, size_t pair);

// Returns the pairs of the inputs of the call whose output `pair` is; empty
// when the traces have none. Linear in the pairs.
std::vector<size_t> InputPairs(const Comparison& comparison, size_t pair);

// Returns what the module of `pair` adds to the error of its inputs, errors
// taken as independent: sqrt(out^2 - in^2). Nothing without inputs.
std::optional<double> AddedError(const Comparison& comparison, size_t pair);

// Returns one sentence: what fired, by how much, against what, and how it was
// confirmed. For a trace without divergence, why there is none.
std::string Explain(const Comparison& comparison);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_COMPARE_H_
