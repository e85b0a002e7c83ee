// Reads a region registry from its textproto (region.proto).

#ifndef LIB_REGIONS_REGION_TEXTPROTO_H_
#define LIB_REGIONS_REGION_TEXTPROTO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/regions/region.h"

namespace firstframe {

// Parses `text`; `where` (a path) begins every message. DataLoss with line and
// column when it is not a RegionRegistryProto.
absl::StatusOr<std::vector<Region>> ParseRegionTextproto(
    absl::string_view text, absl::string_view where);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_TEXTPROTO_H_
