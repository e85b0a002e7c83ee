#include "lib/regions/trace_regions.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "lib/base/edit_distance.h"
#include "lib/base/status_macros.h"
#include "lib/regions/region.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {

absl::StatusOr<std::vector<TracedRegion>> FindTracedRegions(
    const std::string& path, const RegionRegistry& registry) {
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(path));
  std::map<std::string, TracedRegion> found;
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) break;
    // B is a span that was cut off: its region was entered all the same.
    if (event.phase != 'X' && event.phase != 'B') continue;
    if (event.kind == TraceEventKind::kGpuUserAnnotation) continue;
    if (!absl::StartsWith(event.name, kRegionSpanPrefix)) continue;
    const std::string name = ShortRegionName(DecodeJsonString(event.name));
    TracedRegion& region = found[name];
    ++region.count;
    region.total_ns += event.duration_ns;
  }
  std::vector<TracedRegion> regions;
  for (auto& [name, region] : found) {
    region.name = name;
    region.registered = registry.Find(name) != nullptr;
    if (!region.registered) {
      region.nearest = NearestName(name, registry.Names()).value_or("");
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace firstframe
