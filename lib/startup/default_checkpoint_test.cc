#include "lib/startup/default_checkpoint.h"

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/wan_vae/load_weights.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::TempDir;

TEST(CachedCheckpointFolder, FollowsXdg) {
  EXPECT_EQ(CachedCheckpointFolder("small", "/c", "/h"), "/c/firstframe/small");
  EXPECT_EQ(CachedCheckpointFolder("small", "relative", "/h"),
            "/h/.cache/firstframe/small");
  EXPECT_EQ(CachedCheckpointFolder("small", nullptr, nullptr),
            "/tmp/firstframe/small");
}

TEST(EnsureSyntheticVae, MakesItOnce) {
  TempDir dir;
  const std::string folder = dir.File("cache/tiny");
  EXPECT_THAT(EnsureSyntheticVae(folder, "tiny"), IsOkAndHolds(true));
  EXPECT_THAT(EnsureSyntheticVae(folder, "tiny"), IsOkAndHolds(false));
  EXPECT_THAT(FindVaeComponent(folder), IsOk());
}

TEST(EnsureSyntheticVae, AFolderThatCannotBeMadeIsAnError) {
  TempDir dir;
  const std::string file = dir.Write("file", "");
  EXPECT_FALSE(EnsureSyntheticVae(file + "/tiny", "tiny").ok());
}

}  // namespace
}  // namespace firstframe
