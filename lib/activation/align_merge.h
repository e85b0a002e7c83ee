// The merging of parts, before names are matched: pass 4 of
// docs/trace_diff.md. Takes rows that are read, for weights and types.

#ifndef LIB_ACTIVATION_ALIGN_MERGE_H_
#define LIB_ACTIVATION_ALIGN_MERGE_H_

#include <cstdint>
#include <vector>

#include "lib/activation/align_names.h"
#include "lib/activation/merge_rows.h"

namespace firstframe {

// Whether a map sends any name to a part of a target.
bool HasParts(const std::vector<NamedKey>& keys);

// Joins rows that a map sends to parts of one target: the n-th record of each
// part at a step belong together. `keys` and `entity_of` are by key.
void MergeMappedParts(const std::vector<NamedKey>& keys,
                      const std::vector<uint32_t>& entity_of, TraceSide* side);

// Joins what the ranks recorded of one entity, step and occurrence.
void MergeRanks(const std::vector<uint32_t>& entity_of, TraceSide* side);

// Joins each `times[entity]` rows of an entity that follow each other.
void MergeConsecutive(const std::vector<uint32_t>& times,
                      const std::vector<uint32_t>& entity_of, TraceSide* side);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_MERGE_H_
