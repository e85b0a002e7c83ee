#include "lib/trace/read_twice.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace firstframe {

absl::Status CheckReadableTwice(const std::string& path) {
  struct stat info;
  if (path != "-") {
    if (::stat(path.c_str(), &info) != 0) return absl::OkStatus();
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path == "-" ? "standard input" : path,
      ": expected a file, for this reads the trace twice; a pipe gives its "
      "bytes once"));
}

}  // namespace firstframe
