#include "lib/metrics/perf_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace firstframe {

void PerfSink::Log(absl::string_view line) {
  if (log_ == nullptr || !settings_.ShouldLog()) return;
  absl::MutexLock lock(&mutex_);
  *log_ << line << '\n' << std::flush;
}

void PerfSink::Append(absl::string_view json) {
  const std::optional<std::string> path = settings_.RankJsonPath();
  if (!path) return;
  const std::filesystem::path folder =
      std::filesystem::path(*path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  const int fd =
      ::open(path->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) {
    Complain(absl::StrCat("cannot open ", *path, ": ", std::strerror(errno)));
    return;
  }
  const std::string line = absl::StrCat(json, "\n");
  // One write, so that a crash leaves at most the last line torn.
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = ::write(fd, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      Complain(
          absl::StrCat("cannot write ", *path, ": ", std::strerror(errno)));
      break;
    }
    done += static_cast<size_t>(count);
  }
  ::close(fd);
}

void PerfSink::Complain(absl::string_view what) {
  if (log_ == nullptr) return;
  absl::MutexLock lock(&mutex_);
  if (has_complained_) return;
  has_complained_ = true;
  *log_ << settings_.Tag() << " failed to report metrics: " << what << '\n'
        << std::flush;
}

}  // namespace firstframe
