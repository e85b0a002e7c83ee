#include "lib/cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/cli/usage_error.h"

namespace firstframe::cli {
namespace {

constexpr size_t kReadBytes = 1 << 18;

absl::StatusOr<std::string> ReadAll(int fd, absl::string_view name) {
  std::string contents;
  size_t used = 0;
  while (true) {
    contents.resize(used + kReadBytes);
    const ssize_t n = ::read(fd, contents.data() + used, kReadBytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", name));
    }
    if (n == 0) break;
    used += n;
  }
  contents.resize(used);
  return contents;
}

}  // namespace

std::string ResolvePath(absl::string_view path) {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  if (folder == nullptr || path.empty() || path == "-" ||
      absl::StartsWith(path, "/")) {
    return std::string(path);
  }
  return absl::StrCat(folder, "/", path);
}

absl::Status ClaimStdin() {
  static std::atomic<bool> claimed = false;
  if (claimed.exchange(true)) {
    return UsageError("'-' (standard input) can be given only once");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadInput(absl::string_view path) {
  if (path == "-") {
    FF_RETURN_IF_ERROR(ClaimStdin());
    return ReadAll(STDIN_FILENO, "standard input");
  }
  const int fd = ::open(ResolvePath(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  absl::Cleanup close_fd = [fd] { ::close(fd); };
  return ReadAll(fd, path);
}

}  // namespace firstframe::cli
