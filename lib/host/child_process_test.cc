#include "lib/host/child_process.h"

#include <signal.h>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

ChildOptions Shell(const std::string& script) {
  return {.argv = {"/bin/sh", "-c", script}};
}

TEST(RunChild, CapturesOutputAndExitCode) {
  ASSERT_OK_AND_ASSIGN(const ChildResult result,
                       RunChild(Shell("echo one; echo two; exit 3")));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.standard_output, "one\ntwo\n");
  EXPECT_GT(result.wall_ns, 0);
}

TEST(RunChild, ReadsMoreThanAPipeHolds) {
  ASSERT_OK_AND_ASSIGN(const ChildResult result,
                       RunChild(Shell("head -c 300000 /dev/zero")));
  EXPECT_EQ(result.standard_output.size(), 300000u);
}

TEST(RunChild, SetsTheEnvironment) {
  ChildOptions options = Shell("echo $HOME-$LAUNCHED");
  options.environment = {{"HOME", "here"}};
  options.launch_time_variable = "LAUNCHED";
  ASSERT_OK_AND_ASSIGN(const ChildResult result, RunChild(options));
  EXPECT_THAT(result.standard_output, ::testing::MatchesRegex("here-[0-9]+\n"));
}

TEST(RunChild, ASignalIsAnExitCode) {
  ASSERT_OK_AND_ASSIGN(const ChildResult result, RunChild(Shell("kill -9 $$")));
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
}

TEST(RunChild, ForwardsCancellation) {
  ChildOptions options =
      Shell("trap 'echo told; exit 7' INT; while :; do sleep 0.05; done");
  options.is_cancelled = [] { return true; };
  ASSERT_OK_AND_ASSIGN(const ChildResult result, RunChild(options));
  // The signal may come before the trap is set.
  EXPECT_TRUE(result.exit_code == 7 || result.exit_code == 128 + SIGINT);
}

TEST(RunChild, AMissingProgramIsAnError) {
  EXPECT_THAT(RunChild({.argv = {"/no/such/program"}}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
}

}  // namespace
}  // namespace firstframe
