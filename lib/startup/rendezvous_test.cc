#include "lib/startup/rendezvous.h"

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

TEST(ChooseRendezvous, KeepsTheLaunchers) {
  ASSERT_OK_AND_ASSIGN(const RendezvousFacts facts,
                       ChooseRendezvous({.launcher = "torchrun",
                                         .rank = 1,
                                         .world_size = 4,
                                         .master_address = "node7",
                                         .master_port = 29501}));
  EXPECT_EQ(facts.source, "launcher");
  EXPECT_EQ(facts.address, "node7");
  EXPECT_EQ(facts.port, 29501);
  EXPECT_EQ(facts.rank, 1);
  EXPECT_EQ(facts.world_size, 4);
}

TEST(ChooseRendezvous, PicksAFreeLocalPortForOneProcess) {
  ASSERT_OK_AND_ASSIGN(const RendezvousFacts facts, ChooseRendezvous({}));
  EXPECT_EQ(facts.source, "local");
  EXPECT_EQ(facts.address, "127.0.0.1");
  EXPECT_GT(facts.port, 0);
  EXPECT_LT(facts.port, 65536);
}

TEST(ChooseRendezvous, KeepsAnAddressThatCameWithoutAPort) {
  ASSERT_OK_AND_ASSIGN(const RendezvousFacts facts,
                       ChooseRendezvous({.master_address = "localhost"}));
  EXPECT_EQ(facts.address, "localhost");
  EXPECT_GT(facts.port, 0);
}

}  // namespace
}  // namespace firstframe
