#include "lib/observe/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

std::atomic<pid_t> target = 0;

// A signal that the terminal sent went to the program as well: it is of the
// same process group.
void PassOn(int signal, siginfo_t* info, void*) {
  const pid_t pid = target.load();
  if (pid > 0 && info->si_code <= 0) ::kill(pid, signal);
}

class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    struct sigaction action = {};
    action.sa_sigaction = PassOn;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], &action, &saved_[i]);
    }
  }
  ~SignalsPassedOn() {
    target = 0;
    Restore();
  }
  void Restore() const {
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], &saved_[i], nullptr);
    }
  }

 private:
  struct sigaction saved_[std::size(kSignals)] = {};
};

absl::Status CannotStart(const std::string& program, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot start ", program));
}

int64_t Nanoseconds(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000;
}

// Runs in the child; returns only by _exit. `report` closes with a successful
// exec.
[[noreturn]] void Exec(const LaunchOptions& options,
                       const SignalsPassedOn& signals, int report) {
  signals.Restore();
  for (const auto& [name, value] : options.environment) {
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  std::vector<char*> argv;
  for (const std::string& word : options.argv) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written =
      ::write(report, &error, sizeof(error));
  ::_exit(127);
}

void Wait(Launched* launched) {
  int status = 0;
  rusage usage = {};
  while (::wait4(static_cast<pid_t>(launched->pid), &status, 0, &usage) < 0 &&
         errno == EINTR) {
  }
  launched->exit_ns = MonotonicClock::Get().NowNs();
  launched->exit_code =
      WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  launched->user_ns = Nanoseconds(usage.ru_utime);
  launched->system_ns = Nanoseconds(usage.ru_stime);
  launched->max_resident_bytes = int64_t{usage.ru_maxrss} * 1024;
  launched->major_faults = usage.ru_majflt;
  launched->storage_read_bytes = int64_t{usage.ru_inblock} * 512;
}

}  // namespace

absl::StatusOr<Launched> Launch(const LaunchOptions& options) {
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) {
    return CannotStart(options.argv[0], errno);
  }
  SignalsPassedOn signals;
  Launched launched = {.fork_ns = MonotonicClock::Get().NowNs()};
  const pid_t pid = ::fork();
  if (pid == 0) Exec(options, signals, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  if (pid < 0) {
    ::close(report[0]);
    return CannotStart(options.argv[0], fork_error);
  }
  target = pid;
  launched.pid = pid;
  // The pipe's end closes when the kernel has thrown the old program away.
  int error = 0;
  ssize_t size;
  while ((size = ::read(report[0], &error, sizeof(error))) < 0 &&
         errno == EINTR) {
  }
  launched.exec_ns = MonotonicClock::Get().NowNs();
  ::close(report[0]);
  Wait(&launched);
  if (size == sizeof(error)) return CannotStart(options.argv[0], error);
  return launched;
}

}  // namespace firstframe
