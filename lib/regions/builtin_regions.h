// The regions of builtin_regions.textproto, as the build turned them into a
// table, so that no binary parses them when it starts.

#ifndef LIB_REGIONS_BUILTIN_REGIONS_H_
#define LIB_REGIONS_BUILTIN_REGIONS_H_

#include <cstddef>

namespace firstframe {

struct BuiltinRegion {
  const char* name;
  const char* description;
  const char* owner;
  const char* since;
  const char* aliases;  // separated by commas
  const char* deprecated;
};

extern const BuiltinRegion kBuiltinRegions[];
extern const size_t kBuiltinRegionCount;

}  // namespace firstframe

#endif  // LIB_REGIONS_BUILTIN_REGIONS_H_
