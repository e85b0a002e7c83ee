// Module names across repositories: wrappers, index forms, templates, maps.

#ifndef LIB_ACTIVATION_MODULE_NAME_H_
#define LIB_ACTIVATION_MODULE_NAME_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/regex.h"

namespace firstframe {

// Returns `name` in one form: "/" and "[3]" become "." and ".3"; the wrappers
// that PyTorch puts around modules (_orig_mod, _fsdp_wrapped_module,
// _checkpoint_wrapped_module, base_layer, a leading "module" and a leading
// class name) are dropped.
std::string CanonicalModule(absl::string_view name);

// Returns `name` with every component that is a number replaced by "*":
// "decoder.up_blocks.*.resnets.*.conv1". What comes under one template is one
// sub-operation at several depths.
std::string ModuleTemplate(absl::string_view name);

// Returns the last component that is not a number, with the "*" behind it.
std::string LeafTemplate(absl::string_view name);

// A name's place in the other side's model.
struct MappedName {
  std::string name;
  int index = 0;  // which of `count` parts of the target this is
  int count = 1;
};

// Ordered rules from one side's names to the other's, first match wins.
//
// One rule a line, in either form; "#" begins a comment:
//   blocks\.(\d+)\.attn\.q => blocks.\1.attn.to_qkv 0/3
//   r"^blocks\.(\d+)\.to_q\.(.*)$": (r"blocks.\1.to_qkv.\2", 0, 3),
// The second is a line of FastVideo's param_names_mapping; its patterns may
// speak of parameters, so a name is also tried with ".weight" behind it.
class NameMap {
 public:
  // InvalidArgument with the line's number for anything else.
  static absl::StatusOr<NameMap> Parse(absl::string_view text);

  // Returns nothing when no rule matches.
  std::optional<MappedName> Apply(absl::string_view name) const;

  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    std::unique_ptr<const RE2> pattern;
    std::string target;  // with \1
    int index = 0;
    int count = 1;
  };
  std::vector<Rule> rules_;
};

}  // namespace firstframe

#endif  // LIB_ACTIVATION_MODULE_NAME_H_
