// Nearest-name suggestions for misspelt flags, regions and models.

#ifndef LIB_BASE_EDIT_DISTANCE_H_
#define LIB_BASE_EDIT_DISTANCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

// Returns the least number of insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment) that turn `a` into `b`, by bytes.
// O(|a| |b|) time, O(|b|) memory.
size_t EditDistance(absl::string_view a, absl::string_view b);

// Returns the candidate nearest to `name` when it is near enough to be meant:
// at most a third of the name's length away, and at least 1. Ties go to the
// first candidate.
std::optional<std::string> NearestName(
    absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace firstframe

#endif  // LIB_BASE_EDIT_DISTANCE_H_
