#include "lib/regions/region_names.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace firstframe {

std::string FormatRegionNames(const RegionRegistry& registry) {
  std::string names;
  for (const auto& [name, region] : registry.regions()) {
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
    for (const std::string& alias : region.aliases) {
      absl::StrAppend(&names, " ", alias);
    }
  }
  return names;
}

void AddRegionNames(absl::string_view names, RegionRegistry* registry) {
  for (const absl::string_view entry :
       absl::StrSplit(names, ',', absl::SkipWhitespace())) {
    std::vector<std::string> spellings =
        absl::StrSplit(entry, ' ', absl::SkipWhitespace());
    Region region = {.name = std::move(spellings[0])};
    spellings.erase(spellings.begin());
    region.aliases = std::move(spellings);
    registry->Add(std::move(region)).IgnoreError();
  }
}

}  // namespace firstframe
