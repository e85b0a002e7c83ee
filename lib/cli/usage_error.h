// Errors in how a tool was called.

#ifndef LIB_CLI_USAGE_ERROR_H_
#define LIB_CLI_USAGE_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe::cli {

// InvalidArgument that Main answers with "try --help" and exit kTrouble.
absl::Status UsageError(absl::string_view message);

bool IsUsageError(const absl::Status& status);

}  // namespace firstframe::cli

#endif  // LIB_CLI_USAGE_ERROR_H_
