// The files that the processes of one run wrote, as one trace.

#ifndef LIB_ACTIVATION_RANK_FILES_H_
#define LIB_ACTIVATION_RANK_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/trace_input.h"

namespace firstframe {

// Returns the texts of `paths` behind each other. FastVideo's records do not
// say their rank: those without one get the number of their file, from 0, in
// the order of the names, in which "rank_10" comes after "rank_2". Errors as
// TraceInput::Open.
absl::StatusOr<TraceInput> OpenRankFiles(std::vector<std::string> paths,
                                         const std::string& name);

// Returns `text` with `"rank": rank` in every record that says none.
std::string WithRank(absl::string_view text, int rank);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_RANK_FILES_H_
