// Finds and reads the tensors that trace_dump describes.

#ifndef LIB_ACTIVATION_DUMP_SOURCE_H_
#define LIB_ACTIVATION_DUMP_SOURCE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/tensor/tensor.h"

namespace firstframe {

// Returns the files and folders that `patterns` (shell globs, sorted; or plain
// paths) name. NotFound for a pattern that matches nothing.
absl::StatusOr<std::vector<std::string>> ExpandInputs(
    const std::vector<std::string>& patterns);

// Calls `visit` with the name and the data of each tensor in `path`:
//   *.safetensors, an index, a folder with either   every tensor, by its name
//   *.npy             one, by the file's name without ".npy"
//   *.npz             every array, by its name
//   a folder          what is above, of the files in it, sorted by name
// `wants` is asked before a tensor of a checkpoint is read. The view is valid
// during the call. InvalidArgument for another kind of file; errors of the
// readers with the path.
absl::Status ForEachTensor(
    const std::string& path, absl::FunctionRef<bool(absl::string_view)> wants,
    absl::FunctionRef<absl::Status(absl::string_view name,
                                   const TensorView& tensor)>
        visit);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_DUMP_SOURCE_H_
