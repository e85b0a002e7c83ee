// One record in full: what a TraceRow leaves in the text.

#ifndef LIB_ACTIVATION_TRACE_RECORD_H_
#define LIB_ACTIVATION_TRACE_RECORD_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/activation/trace_table.h"
#include "lib/stats/tensor_stats.h"

namespace firstframe {

struct TraceRecord {
  struct Value {
    ValueKind kind = ValueKind::kMissing;
    double number = 0;
    std::string error;  // of kError
  };
  std::array<Value, kNumTraceValues> values;

  // Firstframe's own statistics, where the record has them. A value of the
  // wrong type is as if it were not there.
  std::optional<double> numel, rms, nan, inf_pos, inf_neg, zero;
  std::optional<uint64_t> h_set, h_pos;
  std::optional<std::array<float, kSketchSize>> sketch;
  std::vector<std::pair<int, int64_t>> exponents;
  std::vector<float> samples;
  std::string io;        // "in" for a module's input
  std::string checksum;  // of another tool; empty: none
  // Precision of the numbers where the producer's is coarse: relative, and in
  // the unit of the tensor.
  std::optional<double> stat_rel, stat_abs;
};

// Reads the record that begins at `text[0]`, which TraceReader accepted.
TraceRecord ReadRecord(absl::string_view text);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_TRACE_RECORD_H_
