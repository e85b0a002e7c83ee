// Published models by name, so that a cost needs no file.

#ifndef LIB_FLOPS_KNOWN_MODELS_H_
#define LIB_FLOPS_KNOWN_MODELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/flops/architecture_reader.h"

namespace firstframe {

// Names in the order of the table (known_models.json). Thread-safe.
std::vector<std::string> KnownModelNames();

// Returns the model called `name` ("wan2.1-t2v-14b"). NotFound with the nearest
// name for any other. Thread-safe.
absl::StatusOr<ModelDescription> KnownModel(absl::string_view name);

}  // namespace firstframe

#endif  // LIB_FLOPS_KNOWN_MODELS_H_
