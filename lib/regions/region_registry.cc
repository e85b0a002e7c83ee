#include "lib/regions/region_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/regions/builtin_regions.h"

namespace firstframe {
namespace {

struct StartupRegions {
  absl::Mutex mutex;
  RegionRegistry registry;
};

void AddBuiltin(RegionRegistry& registry) {
  for (size_t i = 0; i < kBuiltinRegionCount; ++i) {
    const BuiltinRegion& builtin = kBuiltinRegions[i];
    Region region = {.name = builtin.name,
                     .description = builtin.description,
                     .owner = builtin.owner,
                     .since = builtin.since,
                     .deprecated = builtin.deprecated};
    for (absl::string_view alias :
         absl::StrSplit(builtin.aliases, ',', absl::SkipEmpty())) {
      region.aliases.emplace_back(alias);
    }
    FF_CHECK(registry.Add(std::move(region)).ok());
  }
}

StartupRegions& GetStartupRegions() {
  static StartupRegions* const regions = [] {
    auto* made = new StartupRegions;
    AddBuiltin(made->registry);
    return made;
  }();
  return *regions;
}

}  // namespace

RegionRegistry RegionRegistry::Default() {
  StartupRegions& startup = GetStartupRegions();
  absl::MutexLock lock(&startup.mutex);
  return startup.registry;
}

absl::Status RegionRegistry::Add(Region region) {
  FF_RETURN_IF_ERROR(ValidateRegionName(region.name));
  region.name = ShortRegionName(region.name);
  FF_RETURN_IF_ERROR(ValidateRegionName(region.name));
  if (const Region* existing = Find(region.name); existing != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "region '", region.name, "' is already registered",
        existing->name == region.name
            ? ""
            : absl::StrCat(" as an alias of '", existing->name, "'")));
  }
  for (std::string& alias : region.aliases) {
    FF_RETURN_IF_ERROR(
        Annotate(ValidateRegionName(alias),
                 absl::StrCat("alias of region '", region.name, "'")));
    alias = ShortRegionName(alias);
    const Region* existing = Find(alias);
    if (existing != nullptr || alias == region.name) {
      return absl::AlreadyExistsError(absl::StrCat(
          "alias '", alias, "' of region '", region.name, "' already names '",
          existing != nullptr ? existing->name : region.name, "'"));
    }
  }
  for (const std::string& alias : region.aliases) {
    aliases_.emplace(alias, region.name);
  }
  std::string name = region.name;
  regions_.emplace(std::move(name), std::move(region));
  return absl::OkStatus();
}

const Region* RegionRegistry::Find(absl::string_view spelling) const {
  const std::string name = ShortRegionName(spelling);
  if (const auto found = regions_.find(name); found != regions_.end()) {
    return &found->second;
  }
  const auto alias = aliases_.find(name);
  if (alias == aliases_.end()) return nullptr;
  return &regions_.at(alias->second);
}

std::vector<std::string> RegionRegistry::Names() const {
  std::vector<std::string> names;
  names.reserve(regions_.size());
  for (const auto& [name, region] : regions_) names.push_back(name);
  return names;
}

bool RegisterRegion(Region region) {
  StartupRegions& startup = GetStartupRegions();
  absl::MutexLock lock(&startup.mutex);
  FF_CHECK(startup.registry.Add(std::move(region)).ok());
  return true;
}

}  // namespace firstframe
