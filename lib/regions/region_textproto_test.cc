#include "lib/regions/region_textproto.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

constexpr char kText[] = R"(
  # A comment.
  region {
    name: "decode" description: "Latents to frames." owner: "vae"
    since: "0.1.0" alias: "vae_decode" alias: "to_frames"
  }
  region { name: "old" deprecated: "use decode" }
)";

TEST(RegionTextproto, ReadsEveryField) {
  ASSERT_OK_AND_ASSIGN(const auto regions, ParseRegionTextproto(kText, "f"));
  ASSERT_EQ(regions.size(), 2u);
  EXPECT_EQ(regions[0].name, "decode");
  EXPECT_EQ(regions[0].description, "Latents to frames.");
  EXPECT_EQ(regions[0].owner, "vae");
  EXPECT_EQ(regions[0].since, "0.1.0");
  EXPECT_THAT(regions[0].aliases,
              ::testing::ElementsAre("vae_decode", "to_frames"));
  EXPECT_EQ(regions[1].deprecated, "use decode");
}

TEST(RegionTextproto, NamesTheLine) {
  EXPECT_THAT(ParseRegionTextproto("region {\n  nam: \"x\"\n}\n", "my.txt"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("my.txt:2:6: ")));
  EXPECT_THAT(ParseRegionTextproto("region { name: \"x\"", "my.txt"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("my.txt:1:")));
}

TEST(RegionTextproto, EveryPrefixIsReadOrRefused) {
  const std::string text = kText;
  for (size_t n = 0; n < text.size(); ++n) {
    const auto regions = ParseRegionTextproto(text.substr(0, n), "f");
    if (!regions.ok()) {
      EXPECT_EQ(regions.status().code(), absl::StatusCode::kDataLoss) << n;
    }
  }
}

}  // namespace
}  // namespace firstframe
