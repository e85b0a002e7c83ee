// Models as users name them: a published name, a file, a folder.

#ifndef LIB_FLOPS_MODEL_LOADER_H_
#define LIB_FLOPS_MODEL_LOADER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/flops/architecture_reader.h"

namespace firstframe {

// Reads what `path` describes:
//   a name of known_models.h       that model
//   a folder with model_index.json, or that file
//                                  each component that has a cost model; a note
//                                  names those that have none
//   a folder with config.json      that component; with safetensors beside it
//                                  also its parameter count
//   a .json file, or a pipe        a component's config
//   a safetensors file or index    inferred from names and shapes
// A component of an unknown class is priced by its linear layers when its
// tensors are at hand. Errors name the path.
absl::StatusOr<std::vector<ModelDescription>> LoadModels(
    const std::string& path);

}  // namespace firstframe

#endif  // LIB_FLOPS_MODEL_LOADER_H_
