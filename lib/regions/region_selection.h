// Which regions a run collects, from one setting.
//
// The setting is a list separated by commas, as FastVideo reads it from
// FASTVIDEO_TORCH_PROFILE_REGIONS, with two additions:
//
//   model_loading,profiler_region_training_train   names, short or long
//   training_*,distillation_?oss                   patterns (lib/base/glob.h)
//   all,-training_validation                       '-' or '!' takes away
//
// Upper case, spaces and repetition do not matter; exclusions win wherever they
// stand. A setting never stops a program: whatever is wrong with it becomes a
// warning, and an entry that selects nothing is ignored.

#ifndef LIB_REGIONS_REGION_SELECTION_H_
#define LIB_REGIONS_REGION_SELECTION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lib/regions/region_registry.h"

namespace firstframe {

struct RegionSelectionOptions {
  // Entries that are in no registry select ranges of that name (profile_run:
  // the program may push ranges of its own) instead of being ignored.
  bool allow_unregistered = false;
  // What messages call the setting.
  std::string setting = "FASTVIDEO_TORCH_PROFILE_REGIONS";
};

// Immutable after parsing; thread-safe.
class RegionSelection {
 public:
  // Selects nothing.
  RegionSelection() = default;

  static RegionSelection Parse(absl::string_view setting,
                               const RegionRegistry& registry,
                               const RegionSelectionOptions& options = {});

  // Returns whether a region of this spelling is collected. An alias answers as
  // its region does.
  bool Selects(absl::string_view spelling) const;

  // Returns the short name of a spelling; of an alias, its region's.
  std::string NameOf(absl::string_view spelling) const;

  // Whether nothing can be selected: collection stays off.
  bool empty() const { return names_.empty() && patterns_.empty(); }

  // Sorted short names selected among the registered ones, and those asked for
  // by name alone.
  const std::vector<std::string>& names() const { return names_; }

  // One sentence each, without a final period; in the order of the setting.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Entries that a person asked for and that must be entered at least once for
  // the run to be what was meant: the plain names, and each pattern.
  const std::vector<std::string>& requested() const { return requested_; }

  // Given the short names of regions that were entered, returns one sentence
  // for every requested entry that none of them satisfies, with the nearest
  // entered name where one is near.
  std::vector<std::string> NeverEntered(
      const std::vector<std::string>& entered) const;

  // Writes the selection as a setting that parses to the same one.
  std::string ToString() const;

 private:
  std::vector<std::string> names_;
  std::vector<std::string> patterns_;    // match names met at run time
  std::vector<std::string> exclusions_;  // names and patterns
  std::vector<std::string> requested_;
  std::vector<std::string> warnings_;
  std::map<std::string, std::string> aliases_;
};

}  // namespace firstframe

#endif  // LIB_REGIONS_REGION_SELECTION_H_
