// Maps between the names of well-known models in diffusers, in their published
// checkpoints, and in FastVideo. The rules are in maps/.

#ifndef LIB_ACTIVATION_MAP_PRESETS_H_
#define LIB_ACTIVATION_MAP_PRESETS_H_

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

struct MapPreset {
  absl::string_view name;     // "wan"
  absl::string_view summary;  // the first comment of its file
  absl::string_view text;     // for NameMap::Parse
};

// Sorted by name.
const std::vector<MapPreset>& MapPresets();

// Returns nothing for a name that is none of them.
std::optional<MapPreset> FindMapPreset(absl::string_view name);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_MAP_PRESETS_H_
