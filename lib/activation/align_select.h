// Chooses the runs and ranks to compare.

#ifndef LIB_ACTIVATION_ALIGN_SELECT_H_
#define LIB_ACTIVATION_ALIGN_SELECT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/activation/align.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// Leaves in both tables the rows of one run each, and of the ranks that both
// can be compared on. What was left out is told in `*warnings`.
absl::Status SelectRuns(const AlignOptions& options, TraceTable* a,
                        TraceTable* b, std::vector<std::string>* warnings);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_SELECT_H_
