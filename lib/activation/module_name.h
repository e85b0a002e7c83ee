// Module names across repositories: wrappers, index forms, templates.

#ifndef LIB_ACTIVATION_MODULE_NAME_H_
#define LIB_ACTIVATION_MODULE_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

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

}  // namespace firstframe

#endif  // LIB_ACTIVATION_MODULE_NAME_H_
