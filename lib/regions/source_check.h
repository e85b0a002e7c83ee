// Compares the region names a source tree registers, uses, documents and asks
// for, and reports where they disagree.

#ifndef LIB_REGIONS_SOURCE_CHECK_H_
#define LIB_REGIONS_SOURCE_CHECK_H_

#include <string>
#include <vector>

#include "lib/regions/region_registry.h"
#include "lib/regions/source_tree.h"

namespace firstframe {

enum class RegionFindingKind {
  kMisspelt,                // in no registry, two letters or less from one
  kUnregisteredUse,         // code enters a region that is not registered
  kUnregisteredRequest,     // a setting asks for one
  kDocumentedUnregistered,  // documentation names one
  kUnused,                  // registered, never entered
  kUndocumented,            // registered, in no documentation
  kRequestedUnused,         // a setting asks for one that no code enters
  kDuplicateRegistration,   // registered twice
};

// Returns the kind's name in reports: "misspelt", "unregistered_use", ...
const char* RegionFindingKindName(RegionFindingKind kind);

// Whether the finding makes a run record less than was meant, as opposed to a
// tree that is untidy.
bool IsError(RegionFindingKind kind);

struct RegionFinding {
  RegionFindingKind kind;
  std::string name;  // short form, or a pattern
  std::string path;
  int line = 0;
  std::string message;
  std::string nearest;  // a registered name, or empty
};

struct SourceCheck {
  std::vector<RegionFinding> findings;  // by path, line, kind
  // The names that count as registered, sorted.
  std::vector<std::string> registered;
  // Whether the tree registers regions itself. If not, `registry` stands in and
  // nothing is reported unused or undocumented.
  bool tree_registers = false;
};

// `registry` is what counts as registered when the tree itself registers
// nothing; `extra` (the user's own file) counts in both cases.
SourceCheck CheckSources(const SourceScan& scan, const RegionRegistry& registry,
                         const std::vector<std::string>& extra);

}  // namespace firstframe

#endif  // LIB_REGIONS_SOURCE_CHECK_H_
