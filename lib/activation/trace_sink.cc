#include "lib/activation/trace_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace firstframe {

std::string ExpandTracePath(absl::string_view pattern, int64_t pid) {
  return absl::StrReplaceAll(pattern, {{"<pid>", absl::StrCat(pid)}});
}

absl::StatusOr<std::unique_ptr<TraceSink>> TraceSink::Open(
    const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(
        error.value(),
        absl::StrCat("trace output: cannot make the folder ", folder.string()));
  }
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("trace output: cannot open ", path));
  }
  return std::unique_ptr<TraceSink>(new TraceSink(path, fd));
}

TraceSink::~TraceSink() { ::close(fd_); }

absl::Status TraceSink::Write(absl::string_view line) {
  std::string text = absl::StrCat(line, "\n");
  absl::MutexLock lock(&mutex_);
  absl::string_view rest = text;
  while (failure_.ok() && !rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      failure_ = absl::ErrnoToStatus(
          errno, absl::StrCat("trace output: cannot write to ", path_));
    } else if (written > 0) {
      rest.remove_prefix(written);
    }
  }
  return failure_;
}

}  // namespace firstframe
