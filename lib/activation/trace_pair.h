// Reads two traces side by side, and what they have in common only once.

#ifndef LIB_ACTIVATION_TRACE_PAIR_H_
#define LIB_ACTIVATION_TRACE_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// Lines that both texts have at the same place, one after the other, in lieu of
// their rows: gigabytes of them cost four bytes a line.
struct EqualRun {
  struct StepChange {
    uint32_t line = 0;  // from this line on
    int32_t step = kNoStep;
  };
  // Rows of the two tables that stand before the run.
  uint32_t row_a = 0, row_b = 0;
  std::vector<uint32_t> keys;  // of each line
  std::vector<StepChange> steps;

  // Calls `visit(key, step)` for each line.
  template <typename Visitor>
  void ForEachLine(Visitor visit) const {
    for (size_t i = 0; i < steps.size(); ++i) {
      const size_t end = i + 1 < steps.size() ? steps[i + 1].line : keys.size();
      for (size_t line = steps[i].line; line < end; ++line) {
        visit(keys[line], steps[i].step);
      }
    }
  }
};

// What becomes of lines that are equal in both texts.
enum class EqualLines : uint8_t {
  kRuns,    // long runs of them become EqualRuns; the others, unread rows
  kRows,    // unread rows
  kParsed,  // rows as any
};

struct TracePair {
  TraceTable a, b;
  // In the order of the texts. None when either table has several segments, or
  // unless asked for.
  std::vector<EqualRun> runs;
  bool has_unread = false;  // rows; runs are besides
};

// The texts and `names` must outlive the result.
TracePair ReadTracePair(absl::string_view a, std::string name_a,
                        absl::string_view b, std::string name_b,
                        EqualLines equal_lines, TraceNames* names);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_PAIR_H_
