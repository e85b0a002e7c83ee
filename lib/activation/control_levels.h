// What a model differs by from itself: the levels of a healthy pair.

#ifndef LIB_ACTIVATION_CONTROL_LEVELS_H_
#define LIB_ACTIVATION_CONTROL_LEVELS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "lib/activation/align.h"

namespace firstframe {

// Medians of a healthy pair by template. Not by row: rows that happen to be
// exact there would make any error elsewhere endless times as large.
struct ControlLevels {
  struct Level {
    double coherent = 0;
    double energy = 0;
  };
  absl::flat_hash_map<std::string, Level> by_template;
};

// Returns the medians of each template over an aligned healthy pair.
ControlLevels MeasureControl(const Alignment& alignment);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_CONTROL_LEVELS_H_
