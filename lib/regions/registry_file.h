// Adds a user's own regions from a file.

#ifndef LIB_REGIONS_REGISTRY_FILE_H_
#define LIB_REGIONS_REGISTRY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "lib/regions/region_registry.h"

namespace firstframe {

// Reads the textproto at `path` (region.proto) and adds its regions to
// `registry`; on an error the registry keeps those before it. NotFound,
// DataLoss (with line and column), or what RegionRegistry::Add says; every
// message begins with the path.
absl::Status AddRegionsFromFile(const std::string& path,
                                RegionRegistry* registry);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGISTRY_FILE_H_
