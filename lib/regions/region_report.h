// Renders what region_check found, as text for people, JSONL for programs, or
// workflow commands that GitHub shows beside the line they name.

#ifndef LIB_REGIONS_REGION_REPORT_H_
#define LIB_REGIONS_REGION_REPORT_H_

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/regions/region_registry.h"
#include "lib/regions/region_selection.h"
#include "lib/regions/source_check.h"
#include "lib/regions/source_tree.h"
#include "lib/regions/trace_regions.h"

namespace firstframe {

enum class RegionReportFormat { kText, kJsonl, kGithub };

// One region a line; JSONL has kind "region".
void WriteRegistry(const RegionRegistry& registry, RegionReportFormat format,
                   std::ostream& out);

// What a setting selects, and each warning; kinds "selection" and "warning".
void WriteSelection(absl::string_view setting, const RegionSelection& selection,
                    const std::vector<std::string>& warnings,
                    RegionReportFormat format, std::ostream& out);

// Each finding, then a summary; kinds "finding" and "source_summary".
void WriteSourceCheck(const SourceScan& scan, const SourceCheck& check,
                      RegionReportFormat format, std::ostream& out);

// The regions a trace contains; kind "traced_region".
void WriteTracedRegions(absl::string_view trace,
                        const std::vector<TracedRegion>& regions,
                        RegionReportFormat format, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_REPORT_H_
