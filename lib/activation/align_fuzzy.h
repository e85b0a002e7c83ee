// Alignment of names that no rule joins: by order, and by signature.

#ifndef LIB_ACTIVATION_ALIGN_FUZZY_H_
#define LIB_ACTIVATION_ALIGN_FUZZY_H_

#include <cstdint>
#include <vector>

#include "lib/activation/align.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// A name of one side with its first record.
struct FirstRecord {
  uint32_t entity = 0;
  uint32_t key = 0;
  uint32_t row = 0;
};

// Returns the names of a side by first appearance. Looks no further than at
// `num_names` of them, which are all.
std::vector<FirstRecord> FirstRecords(const TraceSide& side,
                                      const std::vector<uint32_t>& entity_of,
                                      size_t num_names);

// Both sides' first records.
struct FirstRecordPair {
  std::vector<FirstRecord> a, b;
};

// Looks for names that are on one side alone and stand at the same place of the
// order, between names that both have, with the same leaf, shape and dtype.
// Makes them one entity in `entity_b` and in `first`, and adds a suggestion for
// each. Returns whether there were any.
bool MatchByOrder(const TraceNames& names, FirstRecordPair* first,
                  Alignment* alignment);

// Adds suggestions for names that are still on one side alone and whose first
// records have the same shape and nearly the same numbers.
void SuggestBySignature(const TraceNames& names, const FirstRecordPair& first,
                        Alignment* alignment);

// Warns when the layers of a stack fit better with their neighbours' numbers
// than with their own: an off-by-one in the naming.
void WarnOfShift(const TraceNames& names, const FirstRecordPair& first,
                 Alignment* alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_FUZZY_H_
