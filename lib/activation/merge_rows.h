// Several records as one: parts of a fused projection, halves of a batch,
// ranks.

#ifndef LIB_ACTIVATION_MERGE_ROWS_H_
#define LIB_ACTIVATION_MERGE_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/activation/trace_record.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// A trace that is being compared: the rows chosen from a table, some of them
// merged from several.
struct TraceSide {
  TraceTable table;
  const TraceNames* names = nullptr;
  // Full records of merged rows, whose text is nowhere.
  absl::flat_hash_map<uint32_t, TraceRecord> merged;

  TraceRecord Record(uint32_t row) const;
  // Elements of a row's tensor; 0 when the record does not tell.
  double Numel(uint32_t row) const;
};

// Returns what the whole would have recorded: sums, counts, h_set and exponents
// add, extremes fold, means are weighted by elements, and variances follow
// Chan, Golub and LeVeque (1979). What depends on element order (h_pos, sketch,
// samples) is gone. `numels[i]` belongs to `parts[i]`; 0 counts as equal parts.
TraceRecord MergeRecords(const std::vector<TraceRecord>& parts,
                         const std::vector<double>& numels);

// Replaces the rows of each group by one, at the place of the last of them.
// `group_of[i]` is row i's group, or -1; a group of fewer than `sizes[group]`
// rows stays as it is.
void MergeRowGroups(const std::vector<int32_t>& group_of,
                    const std::vector<int32_t>& sizes, TraceSide* side);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_MERGE_ROWS_H_
