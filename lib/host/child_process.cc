#include "lib/host/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

extern char** environ;

namespace firstframe {
namespace {

constexpr int kPollMs = 100;

int64_t MonotonicNs() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::vector<std::string> Environment(const ChildOptions& options) {
  std::vector<std::string> entries;
  const auto is_replaced = [&](absl::string_view entry) {
    for (const auto& [name, value] : options.environment) {
      if (absl::StartsWith(entry, absl::StrCat(name, "="))) return true;
    }
    return false;
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_replaced(*entry)) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.environment) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Reads `fd` to its end, forwarding one cancellation to `pid`.
std::string Drain(int fd, pid_t pid,
                  const std::function<bool()>& is_cancelled) {
  std::string output;
  bool was_told = false;
  char buffer[1 << 16];
  while (true) {
    pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, kPollMs);
    if (!was_told && is_cancelled && is_cancelled()) {
      ::kill(pid, SIGINT);
      was_told = true;
    }
    if (ready <= 0) continue;
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return output;
    output.append(buffer, n);
  }
}

}  // namespace

absl::StatusOr<ChildResult> RunChild(const ChildOptions& options) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a pipe");
  }
  absl::Cleanup close_read_end = [&] { ::close(pipe_ends[0]); };
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  absl::Cleanup destroy = [&] { ::posix_spawn_file_actions_destroy(&actions); };
  ::posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);

  std::vector<std::string> arguments = options.argv;
  std::vector<char*> argv = Pointers(arguments);
  std::vector<std::string> environment = Environment(options);
  const int64_t start_ns = MonotonicNs();
  if (!options.launch_time_variable.empty()) {
    environment.push_back(
        absl::StrCat(options.launch_time_variable, "=", start_ns));
  }
  std::vector<char*> envp = Pointers(environment);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  ::close(pipe_ends[1]);
  if (error != 0) {
    return absl::ErrnoToStatus(error,
                               absl::StrCat("cannot run ", options.argv[0]));
  }
  ChildResult result;
  result.standard_output = Drain(pipe_ends[0], pid, options.is_cancelled);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.wall_ns = MonotonicNs() - start_ns;
  result.exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace firstframe
