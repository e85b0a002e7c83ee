// The nesting of a phase report, and the time that no phase names.

#ifndef LIB_PHASE_PHASE_TREE_H_
#define LIB_PHASE_PHASE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/phase/phase_record.h"

namespace firstframe {

struct PhaseNode {
  size_t index = 0;  // into PhaseReport::phases
  int depth = 0;     // 0 for a phase without a parent
  std::string path;  // names from the root, joined with '/'
  // Of the duration, what no child of the same lane covers.
  int64_t self_ns = 0;
  bool is_last = false;  // of its siblings
};

struct PhaseGap {
  int64_t start_offset_ns = 0;
  int64_t duration_ns = 0;
};

struct PhaseTree {
  // Depth first, siblings in order of start, roots lane by lane; every phase
  // once. A phase whose parent is absent, or that is its own ancestor, counts
  // as a root.
  std::vector<PhaseNode> nodes;
  // Where no root phase of any lane runs, from offset 0 to the recording's end.
  std::vector<PhaseGap> gaps;
};

PhaseTree BuildPhaseTree(const PhaseReport& report);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_TREE_H_
