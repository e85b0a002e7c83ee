// Alignment of names that no rule joins: by order, and by signature.

#ifndef LIB_ACTIVATION_ALIGN_FUZZY_H_
#define LIB_ACTIVATION_ALIGN_FUZZY_H_

#include "lib/activation/align.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// Looks for names that are on one side alone and stand at the same place of the
// order, between names that both have, with the same leaf, shape and dtype.
// Makes them one entity in `entity_b`, and adds a suggestion for each.
void MatchByOrder(const TraceNames& names, Alignment* alignment);

// Adds suggestions for names that are still on one side alone and whose first
// records have the same shape and nearly the same numbers.
void SuggestBySignature(const TraceNames& names, Alignment* alignment);

// Warns when the layers of a stack fit better with their neighbours' numbers
// than with their own: an off-by-one in the naming.
void WarnOfShift(const TraceNames& names, Alignment* alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_FUZZY_H_
