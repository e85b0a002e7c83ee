#include "lib/regions/source_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/edit_distance.h"
#include "lib/base/glob.h"

namespace firstframe {
namespace {

// Two letters away from a registered name is a slip of the keyboard; further
// away it may as well be another word.
constexpr size_t kMisspeltDistance = 2;

using MentionsByName = std::map<std::string, std::vector<const SourceMention*>>;

struct Mentions {
  MentionsByName registrations;
  MentionsByName disabled;
  MentionsByName uses;
  MentionsByName documentation;
  MentionsByName requests;
};

Mentions GroupMentions(const SourceScan& scan) {
  Mentions mentions;
  for (const SourceMention& found : scan.mentions) {
    MentionsByName* group = nullptr;
    switch (found.mention.kind) {
      case MentionKind::kRegistration:
        group = &mentions.registrations;
        break;
      case MentionKind::kDisabledRegistration:
        group = &mentions.disabled;
        break;
      case MentionKind::kUse:
        group = &mentions.uses;
        break;
      case MentionKind::kDocumentation:
        group = &mentions.documentation;
        break;
      case MentionKind::kRequest:
        group = &mentions.requests;
        break;
    }
    (*group)[found.mention.name].push_back(&found);
  }
  return mentions;
}

std::string At(const SourceMention& mention) {
  return absl::StrCat(mention.path, ":", mention.mention.line);
}

class Checker {
 public:
  Checker(const SourceScan& scan, const RegionRegistry& registry,
          const std::vector<std::string>& extra)
      : mentions_(GroupMentions(scan)) {
    result_.tree_registers = !mentions_.registrations.empty();
    for (const auto& [name, where] : mentions_.registrations) {
      registered_.insert(name);
    }
    for (const std::string& name : extra) registered_.insert(name);
    if (!result_.tree_registers) {
      for (const auto& [name, region] : registry.regions()) {
        registered_.insert(name);
        registered_.insert(region.aliases.begin(), region.aliases.end());
      }
    }
    result_.registered.assign(registered_.begin(), registered_.end());
  }

  SourceCheck Run() {
    CheckNames(mentions_.uses, RegionFindingKind::kUnregisteredUse,
               "is entered but not registered");
    CheckNames(mentions_.requests, RegionFindingKind::kUnregisteredRequest,
               "is asked for but not registered");
    CheckNames(mentions_.documentation,
               RegionFindingKind::kDocumentedUnregistered,
               "is documented but not registered");
    if (result_.tree_registers) {
      CheckRegistrations();
      CheckRequests();
    }
    std::stable_sort(result_.findings.begin(), result_.findings.end(),
                     [](const RegionFinding& a, const RegionFinding& b) {
                       return std::tie(a.path, a.line, a.kind, a.name) <
                              std::tie(b.path, b.line, b.kind, b.name);
                     });
    return std::move(result_);
  }

 private:
  bool IsRegistered(const std::string& name) const {
    if (!IsGlob(name)) return registered_.count(name) != 0;
    return std::any_of(
        registered_.begin(), registered_.end(),
        [&](const std::string& known) { return GlobMatch(name, known); });
  }

  void Add(RegionFindingKind kind, const SourceMention& at,
           const std::string& name, std::string message,
           std::string nearest = "") {
    result_.findings.push_back({kind, name, at.path, at.mention.line,
                                std::move(message), std::move(nearest)});
  }

  // One finding for each name and place; a name mentioned in many places of one
  // file is reported where it stands first.
  void CheckNames(const MentionsByName& names, RegionFindingKind kind,
                  absl::string_view what) {
    for (const auto& [name, places] : names) {
      if (IsRegistered(name)) continue;
      const std::string nearest =
          NearestName(name, result_.registered).value_or("");
      const bool misspelt = !nearest.empty() && !IsGlob(name) &&
                            EditDistance(name, nearest) <= kMisspeltDistance;
      std::string message = absl::StrCat("region '", name, "' ", what);
      if (!nearest.empty()) {
        absl::StrAppend(&message, "; nearest registered name: '", nearest, "'");
      }
      if (const auto off = mentions_.disabled.find(name);
          off != mentions_.disabled.end()) {
        absl::StrAppend(&message, "; its registration is commented out at ",
                        At(*off->second.front()));
      }
      std::set<std::string> files;
      for (const SourceMention* place : places) {
        if (!files.insert(place->path).second) continue;
        Add(misspelt ? RegionFindingKind::kMisspelt : kind, *place, name,
            message, nearest);
      }
    }
  }

  void CheckRegistrations() {
    for (const auto& [name, places] : mentions_.registrations) {
      const SourceMention& first = *places.front();
      for (size_t i = 1; i < places.size(); ++i) {
        Add(RegionFindingKind::kDuplicateRegistration, *places[i], name,
            absl::StrCat("region '", name, "' is registered again; first at ",
                         At(first)));
      }
      if (mentions_.uses.count(name) == 0) {
        Add(RegionFindingKind::kUnused, first, name,
            absl::StrCat("region '", name,
                         "' is registered but no code enters it"));
      }
      // A request in a guide (an example command) documents it too.
      if (mentions_.documentation.count(name) == 0) {
        Add(RegionFindingKind::kUndocumented, first, name,
            absl::StrCat("region '", name,
                         "' is registered but no documentation names it"));
      }
    }
  }

  void CheckRequests() {
    for (const auto& [name, places] : mentions_.requests) {
      if (IsGlob(name) || !IsRegistered(name)) continue;
      if (mentions_.uses.count(name) != 0) continue;
      Add(RegionFindingKind::kRequestedUnused, *places.front(), name,
          absl::StrCat("region '", name,
                       "' is asked for but no code enters it"));
    }
  }

  const Mentions mentions_;
  std::set<std::string> registered_;
  SourceCheck result_;
};

}  // namespace

const char* RegionFindingKindName(RegionFindingKind kind) {
  switch (kind) {
    case RegionFindingKind::kMisspelt:
      return "misspelt";
    case RegionFindingKind::kUnregisteredUse:
      return "unregistered_use";
    case RegionFindingKind::kUnregisteredRequest:
      return "unregistered_request";
    case RegionFindingKind::kDocumentedUnregistered:
      return "documented_unregistered";
    case RegionFindingKind::kUnused:
      return "unused";
    case RegionFindingKind::kUndocumented:
      return "undocumented";
    case RegionFindingKind::kRequestedUnused:
      return "requested_unused";
    case RegionFindingKind::kDuplicateRegistration:
      return "duplicate_registration";
  }
  return "unknown";
}

bool IsError(RegionFindingKind kind) {
  switch (kind) {
    case RegionFindingKind::kMisspelt:
    case RegionFindingKind::kUnregisteredUse:
    case RegionFindingKind::kUnregisteredRequest:
    case RegionFindingKind::kRequestedUnused:
    case RegionFindingKind::kDuplicateRegistration:
      return true;
    case RegionFindingKind::kDocumentedUnregistered:
    case RegionFindingKind::kUnused:
    case RegionFindingKind::kUndocumented:
      return false;
  }
  return true;
}

SourceCheck CheckSources(const SourceScan& scan, const RegionRegistry& registry,
                         const std::vector<std::string>& extra) {
  return Checker(scan, registry, extra).Run();
}

}  // namespace firstframe
