// Which regions a recorded trace contains.

#ifndef LIB_REGIONS_TRACE_REGIONS_H_
#define LIB_REGIONS_TRACE_REGIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/regions/region_registry.h"

namespace firstframe {

struct TracedRegion {
  std::string name;  // short form
  int64_t count = 0;
  int64_t total_ns = 0;
  bool registered = false;
  std::string nearest = {};  // a registered name, when not registered
};

// Reads the trace at `path` ("-": standard input) and returns its regions: the
// host's spans named "fastvideo.region::...", long and short spelling counted
// as one, by name. Codes as TraceReader::Open.
absl::StatusOr<std::vector<TracedRegion>> FindTracedRegions(
    const std::string& path, const RegionRegistry& registry);

}  // namespace firstframe

#endif  // LIB_REGIONS_TRACE_REGIONS_H_
