#include "lib/cli/interrupt.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace firstframe::cli {
namespace {

TEST(InterruptDeathTest, TheFirstSignalIsAFlagTheSecondEndsTheProcess) {
  EXPECT_EXIT(
      {
        CatchInterrupts();
        if (InterruptSignal() != 0) _exit(1);
        ::raise(SIGINT);
        if (InterruptSignal() != SIGINT) _exit(2);
        ::raise(SIGINT);
        _exit(3);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace firstframe::cli
