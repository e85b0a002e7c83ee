// How often each side records each name, and what follows from it.

#ifndef LIB_ACTIVATION_ALIGN_CENSUS_H_
#define LIB_ACTIVATION_ALIGN_CENSUS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/activation/align.h"

namespace firstframe {

// What one pass over the rows of a side tells.
struct Census {
  static constexpr uint32_t kNone = 0xFFFFFFFFu;
  std::vector<uint32_t> counts;  // by entity
  std::vector<uint32_t> first;   // row, by entity; kNone: none, or in a run
  size_t num_names = 0;
  bool has_steps = false;
};

struct CensusPair {
  Census a, b;
};

// Counts both sides of `alignment`, whose rows, runs and entities are there.
CensusPair CountNames(const Alignment& alignment, size_t num_keys);

// Merges consecutive calls where one side ran a batch in one call and the other
// in several. Where none did: without steps or run keys, a run that was
// appended shows only in the counts, and the earlier ones are dropped. Sets
// `needs_rows` in place of either when there are runs.
void MergeCalls(const CensusPair& census, Alignment* alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_CENSUS_H_
