#include "lib/regions/region_names.h"

#include "gtest/gtest.h"
#include "lib/regions/region_selection.h"
#include "lib/testing/status_matchers.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;

TEST(RegionNames, GoToAnotherProcessAndBack) {
  RegionRegistry registry = RegionRegistry::Default();
  ASSERT_THAT(registry.Add({.name = "my_decode", .aliases = {"old", "older"}}),
              IsOk());
  ASSERT_THAT(registry.Add({.name = "解码"}), IsOk());
  const std::string names = FormatRegionNames(registry);
  RegionRegistry there = RegionRegistry::Default();
  AddRegionNames(names, &there);
  EXPECT_EQ(FormatRegionNames(there), names);
  EXPECT_EQ(there.Names(), registry.Names());
  const RegionSelection selection =
      RegionSelection::Parse("my_decode", there, {});
  EXPECT_TRUE(selection.Selects("fastvideo.region::old"));
  EXPECT_EQ(selection.NameOf("fastvideo.region::profiler_region_OLDER"),
            "my_decode");
  EXPECT_EQ(selection.NameOf("Unknown"), "unknown");
}

TEST(RegionNames, WhatIsNoNameIsLeftOut) {
  RegionRegistry registry;
  AddRegionNames(", ,UPPER,a a,b c,b d,*,e b", &registry);
  EXPECT_EQ(FormatRegionNames(registry), "b c");
  AddRegionNames("", &registry);
  EXPECT_EQ(registry.Names().size(), 1u);
}

}  // namespace
}  // namespace firstframe
