// Paths and inputs as a user gives them.

#ifndef LIB_CLI_INPUT_H_
#define LIB_CLI_INPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe::cli {

// Returns `path` as the user meant it: under `bazel run` the process starts in
// its runfiles folder, and BUILD_WORKING_DIRECTORY is where the user stood.
// Absolute paths and "-" are returned as they are.
std::string ResolvePath(absl::string_view path);

// Returns the whole of `path`, or of standard input for "-" (once a process;
// a second "-" is a usage error). Codes from errno, with the path.
absl::StatusOr<std::string> ReadInput(absl::string_view path);

// Marks standard input as taken, for a caller that reads descriptor 0 itself.
// A usage error the second time.
absl::Status ClaimStdin();

}  // namespace firstframe::cli

#endif  // LIB_CLI_INPUT_H_
