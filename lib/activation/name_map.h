// Rules that lead from one repository's module names to another's.

#ifndef LIB_ACTIVATION_NAME_MAP_H_
#define LIB_ACTIVATION_NAME_MAP_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/regex.h"

namespace firstframe {

// A name's place in the other side's model.
struct MappedName {
  std::string name;
  std::string tensor;  // the label there; empty: unchanged
  int index = 0;       // which of `count` parts of the target this is
  int count = 1;
  bool has_none = false;  // the other side computes no such thing
};

// Ordered rules from one side's names to the other's, first match wins.
//
// One rule a line, in any of these forms; "#" begins a comment:
//   blocks\.(\d+)\.attn\.q => blocks.\1.attn.to_qkv 0/3
//   ^norm1\.(\d+) out\[0\]$ => norms.\1 out     with the tensor's label
//   ^blocks\.\d+\.drop$ => -                    has no counterpart
//   - => ^blocks\.\d+\.residual$                nor has this, over there
//   r"^blocks\.(\d+)\.to_q\.(.*)$": (r"blocks.\1.to_qkv.\2", 0, 3),
// The last is a line of FastVideo's param_names_mapping; its patterns may speak
// of parameters, so a name is also tried with ".weight" behind it.
class NameMap {
 public:
  // InvalidArgument with the line's number for anything else.
  static absl::StatusOr<NameMap> Parse(absl::string_view text);

  // Returns nothing when no rule matches.
  std::optional<MappedName> Apply(absl::string_view name,
                                  absl::string_view tensor = "out") const;

  // Whether `name` of the other side has no counterpart on this one.
  bool IsTargetAlone(absl::string_view name,
                     absl::string_view tensor = "out") const;

  bool empty() const { return rules_.empty() && alone_.empty(); }
  size_t size() const { return rules_.size() + alone_.size(); }

 private:
  struct Rule {
    std::unique_ptr<const RE2> pattern;
    bool has_tensor = false;  // the pattern speaks of "NAME LABEL"
    std::string target;       // with \1; empty: no counterpart
    std::string tensor;       // of the target
    int index = 0;
    int count = 1;
  };

  absl::Status Add(absl::string_view line);

  std::vector<Rule> rules_;
  std::vector<Rule> alone_;  // of the other side
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_NAME_MAP_H_
