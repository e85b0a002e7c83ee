// A registry's names and aliases in one line, for another process. Thread-safe
// as far as the registry is not changed meanwhile.

#ifndef LIB_REGIONS_REGION_NAMES_H_
#define LIB_REGIONS_REGION_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lib/regions/region_registry.h"

namespace firstframe {

// "name alias alias,name": no name can hold a space or a comma.
std::string FormatRegionNames(const RegionRegistry& registry);

// Adds what FormatRegionNames wrote; names that are taken already are left as
// they are, and so is what cannot be a name.
void AddRegionNames(absl::string_view names, RegionRegistry* registry);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_NAMES_H_
