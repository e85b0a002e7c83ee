#include "lib/regions/registry_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

constexpr char kText[] = R"(
  region { name: "decode" description: "Latents to frames." alias: "to_frames" }
)";

TEST(RegistryFile, AddsAFile) {
  const TempDir dir;
  RegionRegistry registry = RegionRegistry::Default();
  EXPECT_THAT(AddRegionsFromFile(dir.Write("r.textproto", kText), &registry),
              IsOk());
  EXPECT_EQ(registry.Find("to_frames")->name, "decode");
  EXPECT_THAT(AddRegionsFromFile(dir.File("absent"), &registry),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
  EXPECT_THAT(
      AddRegionsFromFile(
          dir.Write("bad.textproto", "region { name: \"model_loading\" }"),
          &registry),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("bad.textproto")));
}

TEST(RegistryFile, RefusesAFolder) {
  const TempDir dir;
  RegionRegistry registry;
  EXPECT_THAT(
      AddRegionsFromFile(dir.File("."), &registry),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot read")));
}

}  // namespace
}  // namespace firstframe
