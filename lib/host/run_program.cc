#include "lib/host/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr int kForwarded[] = {SIGTERM, SIGHUP,  SIGQUIT,
                              SIGINT,  SIGUSR1, SIGUSR2};

int64_t NowNs() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t ToNs(const timeval& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + int64_t{time.tv_usec} * 1000;
}

// In the child: becomes the program, or reports errno through `report`.
[[noreturn]] void Become(const ProgramOptions& options, const sigset_t& signals,
                         int report) {
  for (const std::string& name : options.unset) ::unsetenv(name.c_str());
  for (const auto& [name, value] : options.set) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.arguments) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(arguments[0], arguments.data());
  const int code = errno;
  if (::write(report, &code, sizeof(code)) < 0) ::_exit(126);
  ::_exit(127);
}

absl::Status StartError(const std::string& program, int code) {
  const std::string message = absl::StrCat(program, ": ", std::strerror(code));
  if (code == ENOENT) return absl::NotFoundError(message);
  if (code == EACCES) return absl::PermissionDeniedError(message);
  return absl::UnknownError(message);
}

}  // namespace

absl::StatusOr<ProgramExit> RunProgram(const ProgramOptions& options) {
  if (options.arguments.empty()) {
    return absl::InvalidArgumentError("no program to run");
  }
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return StartError("pipe", errno);
  // Signals are taken one by one below, so none can slip in between.
  sigset_t waited, before;
  ::sigemptyset(&waited);
  ::sigaddset(&waited, SIGCHLD);
  for (const int signal : kForwarded) ::sigaddset(&waited, signal);
  ::sigprocmask(SIG_BLOCK, &waited, &before);
  ProgramExit exit;
  exit.fork_ns = NowNs();
  exit.pid = ::fork();
  if (exit.pid < 0) {
    const int code = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return StartError("fork", code);
  }
  if (exit.pid == 0) Become(options, before, report[1]);
  ::close(report[1]);
  int failure = 0;
  ssize_t got;
  do {
    got = ::read(report[0], &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  // The pipe's other end closed when the kernel threw the old program away.
  exit.exec_ns = NowNs();
  ::close(report[0]);

  int status = 0;
  rusage usage = {};
  for (;;) {
    const pid_t ended = ::wait4(exit.pid, &status, WNOHANG, &usage);
    if (ended == exit.pid) break;
    siginfo_t info;
    const int signal = ::sigwaitinfo(&waited, &info);
    if (signal < 0 || signal == SIGCHLD) continue;
    // The terminal signals the whole group; the child is in it.
    if (info.si_code == SI_KERNEL) continue;
    ::kill(exit.pid, signal);
  }
  exit.exit_ns = NowNs();
  exit.wall_ns = exit.exit_ns - exit.fork_ns;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (got == sizeof(failure)) return StartError(options.arguments[0], failure);
  exit.user_ns = ToNs(usage.ru_utime);
  exit.system_ns = ToNs(usage.ru_stime);
  exit.max_resident_bytes = int64_t{usage.ru_maxrss} * 1024;
  exit.major_faults = usage.ru_majflt;
  exit.storage_read_bytes = int64_t{usage.ru_inblock} * 512;
  if (WIFSIGNALED(status)) {
    exit.signal = WTERMSIG(status);
  } else {
    exit.code = WEXITSTATUS(status);
  }
  return exit;
}

}  // namespace firstframe
