#include "lib/host/run_program.h"

#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

ProgramOptions Shell(const std::string& script) {
  return {.arguments = {"sh", "-c", script}};
}

TEST(RunProgram, ExitCodesAndSignals) {
  ASSERT_OK_AND_ASSIGN(const ProgramExit seven, RunProgram(Shell("exit 7")));
  EXPECT_EQ(seven.code, 7);
  EXPECT_EQ(seven.ShellCode(), 7);
  ASSERT_OK_AND_ASSIGN(const ProgramExit killed,
                       RunProgram(Shell("kill -9 $$")));
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.ShellCode(), 137);
  EXPECT_GT(killed.wall_ns, 0);
}

TEST(RunProgram, TimesAreInOrder) {
  ASSERT_OK_AND_ASSIGN(const ProgramExit exit, RunProgram(Shell("sleep 0.02")));
  EXPECT_GT(exit.fork_ns, 0);
  EXPECT_GE(exit.exec_ns, exit.fork_ns);
  EXPECT_GE(exit.exit_ns, exit.exec_ns + 10'000'000);
  EXPECT_EQ(exit.wall_ns, exit.exit_ns - exit.fork_ns);
  EXPECT_GT(exit.max_resident_bytes, 100'000);
}

TEST(RunProgram, Environment) {
  const TempDir dir;
  ::setenv("FF_TEST_GONE", "1", 1);
  ProgramOptions options =
      Shell("echo \"$FF_TEST_SET ${FF_TEST_GONE-unset}\" >" + dir.File("out"));
  options.set = {{"FF_TEST_SET", "a b"}};
  options.unset = {"FF_TEST_GONE"};
  ASSERT_OK_AND_ASSIGN(const ProgramExit exit, RunProgram(options));
  EXPECT_EQ(exit.code, 0);
  EXPECT_EQ(ReadFile(dir.File("out")), "a b unset\n");
}

TEST(RunProgram, PassesSignalsOn) {
  // The sender must not take the signal itself.
  sigset_t term;
  ::sigemptyset(&term);
  ::sigaddset(&term, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
  const pid_t self = ::getpid();
  std::thread sender([self] {
    ::usleep(300000);
    ::kill(self, SIGTERM);
  });
  ASSERT_OK_AND_ASSIGN(
      const ProgramExit exit,
      RunProgram(Shell("trap 'exit 42' TERM; while :; do sleep 0.05; done")));
  sender.join();
  ::pthread_sigmask(SIG_UNBLOCK, &term, nullptr);
  EXPECT_EQ(exit.code, 42);
}

TEST(RunProgram, Failures) {
  const TempDir dir;
  EXPECT_THAT(
      RunProgram({.arguments = {"no-such-program-here"}}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-such-program-here")));
  EXPECT_THAT(RunProgram({.arguments = {dir.Write("data", "x")}}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("data")));
  EXPECT_FALSE(RunProgram({.arguments = {}}).ok());
}

}  // namespace
}  // namespace firstframe
