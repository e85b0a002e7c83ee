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
  std::vector<uint32_t> counts;  // by entity
  // By entity: its first row. That of a name is never in a run.
  std::vector<uint32_t> first;
  size_t num_names = 0;
  bool has_steps = false;
};

struct CensusPair {
  Census a, b;
};

// Counts both sides of `alignment`, whose rows, runs and entities are there.
CensusPair CountNames(const Alignment& alignment, size_t num_keys);

// By entity: how many rows of a side, one after the other, are one of the other
// side's. Below 2: none.
struct CallMerge {
  std::vector<uint32_t> a, b;
  bool any_a = false, any_b = false;
  bool any() const { return any_a || any_b; }
};

// Looks for entities where one side ran a batch in one call, the other in
// several (two halves of classifier-free guidance): n times the records, of 1/n
// the elements.
CallMerge PlanMerge(const CensusPair& census, const Alignment& alignment);

// Merges them, with a warning.
void MergeCalls(const CallMerge& merge, Alignment* alignment);

// Without steps or run keys, a run that was appended shows only in the counts:
// every name m times as often as on the other side. Drops the earlier ones,
// with a warning. False when that must be done without EqualRuns.
bool DropEarlierRuns(const CensusPair& census, Alignment* alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_CENSUS_H_
