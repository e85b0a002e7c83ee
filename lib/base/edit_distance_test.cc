#include "lib/base/edit_distance.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("frmaes", "frames"), 1u);
}

TEST(EditDistance, IsSymmetric) {
  EXPECT_EQ(EditDistance("denoising", "denoise"),
            EditDistance("denoise", "denoising"));
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> names = {"frames", "height", "width"};
  EXPECT_EQ(NearestName("frame", names), "frames");
  EXPECT_EQ(NearestName("heigth", names), "height");
  EXPECT_EQ(NearestName("seed", names), std::nullopt);
  EXPECT_EQ(NearestName("frames", {}), std::nullopt);
}

}  // namespace
}  // namespace firstframe
