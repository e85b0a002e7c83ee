// Says which names of two traces stand for the same thing: canonical forms, the
// map, labels of outputs that one side wraps in a tuple.

#ifndef LIB_ACTIVATION_ALIGN_NAMES_H_
#define LIB_ACTIVATION_ALIGN_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/activation/align.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// What a key of TraceNames is on one side.
struct NamedKey {
  std::string module;  // canonical, after the map
  std::string tensor;
  int index = 0, count = 1;  // a part of a merged target
  bool is_mapped = false;
  bool is_alone = false;  // the map says that the other side has none
};

// The keys of both sides of `alignment`, which holds the tables and the runs,
// by number, after `options`' maps. A preset is applied to the side that it
// makes agree with the other one in most names, if either. A module with the
// one output "out[0]" on one side and "out" on the other returns a tuple of one
// there: the label becomes "out".
struct NamedKeys {
  std::vector<NamedKey> a, b;
};
NamedKeys NameKeys(const TraceNames& names, const Alignment& alignment,
                   const AlignOptions& options);

// Removes the rows of keys that are alone; returns how many.
int64_t RemoveAlone(const std::vector<NamedKey>& keys, TraceTable* table);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_ALIGN_NAMES_H_
