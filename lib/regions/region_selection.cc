#include "lib/regions/region_selection.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/edit_distance.h"
#include "lib/base/glob.h"

namespace firstframe {
namespace {

struct Entry {
  std::string name;  // short form, or a pattern
  bool excludes = false;
  bool is_pattern = false;
};

// "all" is a pattern by name, as people write it.
std::vector<Entry> SplitSetting(absl::string_view setting) {
  std::vector<Entry> entries;
  for (absl::string_view part : absl::StrSplit(setting, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    Entry entry;
    if (part[0] == '-' || part[0] == '!') {
      entry.excludes = true;
      part.remove_prefix(1);
    }
    entry.name = ShortRegionName(part);
    if (entry.name == "all") entry.name = "*";
    entry.is_pattern = IsGlob(entry.name);
    if (!entry.name.empty()) entries.push_back(std::move(entry));
  }
  return entries;
}

bool Contains(const std::vector<std::string>& list, absl::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& item) { return item == name; });
}

bool MatchesAny(const std::vector<std::string>& patterns,
                absl::string_view name) {
  return std::any_of(
      patterns.begin(), patterns.end(),
      [&](const std::string& pattern) { return GlobMatch(pattern, name); });
}

std::string UnknownMessage(const RegionSelectionOptions& options,
                           const std::string& name,
                           const RegionRegistry& registry,
                           absl::string_view consequence) {
  std::string message = absl::StrCat(options.setting, ": region '", name,
                                     "' is not registered", consequence);
  if (auto nearest = NearestName(name, registry.Names()); nearest.has_value()) {
    absl::StrAppend(&message, "; did you mean '", *nearest, "'?");
  }
  return message;
}

}  // namespace

RegionSelection RegionSelection::Parse(absl::string_view setting,
                                       const RegionRegistry& registry,
                                       const RegionSelectionOptions& options) {
  RegionSelection selection;
  for (const auto& [name, region] : registry.regions()) {
    for (const std::string& alias : region.aliases) {
      selection.aliases_.emplace(alias, name);
    }
  }
  const std::vector<Entry> entries = SplitSetting(setting);
  std::set<std::string> names;
  const std::vector<std::string> registered = registry.Names();
  for (const Entry& entry : entries) {
    const Region* region = registry.Find(entry.name);
    const std::string name = region != nullptr ? region->name : entry.name;
    if (entry.excludes) {
      selection.exclusions_.push_back(name);
      continue;
    }
    if (region != nullptr && !region->deprecated.empty()) {
      selection.warnings_.push_back(
          absl::StrCat(options.setting, ": region '", name,
                       "' is deprecated: ", region->deprecated));
    }
    if (Contains(selection.requested_, name)) continue;
    if (entry.is_pattern) {
      bool matched = false;
      for (const std::string& candidate : registered) {
        if (!GlobMatch(name, candidate)) continue;
        matched = true;
        names.insert(candidate);
      }
      if (matched || options.allow_unregistered) {
        selection.patterns_.push_back(name);
        selection.requested_.push_back(name);
      } else {
        selection.warnings_.push_back(
            absl::StrCat(options.setting, ": pattern '", name,
                         "' matches no registered region and is ignored"));
      }
      continue;
    }
    if (region == nullptr && !options.allow_unregistered) {
      selection.warnings_.push_back(
          UnknownMessage(options, name, registry, " and is ignored"));
      continue;
    }
    if (region == nullptr && NearestName(name, registered).has_value()) {
      selection.warnings_.push_back(UnknownMessage(
          options, name, registry, "; ranges of that name are collected"));
    }
    names.insert(name);
    selection.requested_.push_back(name);
  }
  for (const std::string& name : names) {
    if (!MatchesAny(selection.exclusions_, name)) {
      selection.names_.push_back(name);
    }
  }
  // Everything that was asked for was taken away again: nothing can match.
  if (selection.names_.empty() && !options.allow_unregistered) {
    selection.patterns_.clear();
  }
  if (selection.empty()) {
    selection.warnings_.push_back(absl::StrCat(
        options.setting,
        entries.empty() ? " names no region" : " selects no region",
        ": nothing is collected; registered regions: ",
        absl::StrJoin(registered, ", ")));
  }
  return selection;
}

std::string RegionSelection::NameOf(absl::string_view spelling) const {
  std::string name = ShortRegionName(spelling);
  const auto alias = aliases_.find(name);
  return alias != aliases_.end() ? alias->second : name;
}

bool RegionSelection::Selects(absl::string_view spelling) const {
  const std::string name = NameOf(spelling);
  if (MatchesAny(exclusions_, name)) return false;
  return std::binary_search(names_.begin(), names_.end(), name) ||
         MatchesAny(patterns_, name);
}

std::vector<std::string> RegionSelection::NeverEntered(
    const std::vector<std::string>& entered) const {
  std::vector<std::string> messages;
  std::set<std::string> known;
  for (const std::string& spelling : entered) {
    known.insert(NameOf(spelling));
  }
  for (const std::string& request : requested_) {
    if (MatchesAny(exclusions_, request)) continue;
    const bool met = std::any_of(
        known.begin(), known.end(),
        [&](const std::string& name) { return GlobMatch(request, name); });
    if (met) continue;
    std::string message = absl::StrCat(
        IsGlob(request) ? "no region that matches '" : "region '", request,
        IsGlob(request) ? "' was entered"
                        : "' was requested and never entered");
    const std::vector<std::string> candidates(known.begin(), known.end());
    if (const auto near = NearestName(request, candidates); near.has_value()) {
      absl::StrAppend(&message, "; entered was '", *near, "'");
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::string RegionSelection::ToString() const {
  std::vector<std::string> parts = requested_;
  for (const std::string& exclusion : exclusions_) {
    parts.push_back(absl::StrCat("-", exclusion));
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace firstframe
