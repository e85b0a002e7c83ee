#include "lib/cli/tty.h"

#include <sstream>
#include <thread>

#include "gtest/gtest.h"
#include "lib/cli/progress.h"

namespace firstframe::cli {
namespace {

TEST(UseColor, FollowsTheFlagThenTheEnvironment) {
  EXPECT_TRUE(UseColor("auto", true, nullptr, "xterm"));
  EXPECT_TRUE(UseColor("auto", true, "", nullptr));
  EXPECT_FALSE(UseColor("auto", true, "1", "xterm"));
  EXPECT_FALSE(UseColor("auto", true, nullptr, "dumb"));
  EXPECT_FALSE(UseColor("auto", false, nullptr, "xterm"));
  EXPECT_TRUE(UseColor("always", false, "1", "dumb"));
  EXPECT_FALSE(UseColor("never", true, nullptr, "xterm"));
}

TEST(TerminalColumns, FallsBackWithoutATerminal) {
  EXPECT_EQ(TerminalColumns(-1, 72), 72);
}

TEST(Progress, IsSilentWhenDisabledOrQuick) {
  std::ostringstream err;
  Progress(err, /*enabled=*/false, "decode").Update(0.5);
  Progress(err, /*enabled=*/true, "decode").Update(0.5);
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, DrawsAndErasesItsLine) {
  std::ostringstream err;
  {
    Progress progress(err, /*enabled=*/true, "decode");
    std::this_thread::sleep_for(std::chrono::milliseconds(310));
    progress.Update(0.5, "frame 3 of 9");
    EXPECT_NE(err.str().find("50%"), std::string::npos);
    EXPECT_NE(err.str().find("frame 3 of 9"), std::string::npos);
  }
  EXPECT_EQ(err.str().substr(err.str().size() - 4), "\r\x1b[K");
}

}  // namespace
}  // namespace firstframe::cli
