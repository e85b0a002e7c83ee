// The regions a program may record, by name.

#ifndef LIB_REGIONS_REGION_REGISTRY_H_
#define LIB_REGIONS_REGION_REGISTRY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/regions/region.h"

namespace firstframe {

// Thread-compatible. Regions keep a stable order: by name.
class RegionRegistry {
 public:
  // Every region built in or registered at start-up by RegisterRegion.
  static RegionRegistry Default();

  // Adds a region. InvalidArgument for a malformed name or alias, AlreadyExists
  // when a name or alias is taken, also under its long form.
  absl::Status Add(Region region);

  // Returns the region that a spelling (short, long, alias, any case) names, or
  // null. Valid until the registry changes.
  const Region* Find(absl::string_view spelling) const;

  // Returns the short names, sorted.
  std::vector<std::string> Names() const;

  const std::map<std::string, Region>& regions() const { return regions_; }

 private:
  std::map<std::string, Region> regions_;
  std::map<std::string, std::string> aliases_;  // alias to name
};

// Registers a region of this program, before main():
//
//   const bool kRegistered =
//       firstframe::RegisterRegion({.name = "decode", .description = "..."});
//
// Thread-safe. A malformed or taken name is a bug of the program's and stops
// it.
bool RegisterRegion(Region region);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_REGISTRY_H_
