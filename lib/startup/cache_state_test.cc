#include "lib/startup/cache_state.h"

#include "gtest/gtest.h"
#include "lib/load/file_system.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

TEST(PrepareCache, WarmMakesEverythingResident) {
  TempDir dir;
  const std::vector<std::string> files = {
      dir.Write("a", std::string(3 << 20, 'a')),
      dir.Write("b", std::string(5000, 'b'))};
  ASSERT_THAT(PrepareCache("warm", files), IsOk());
  const Residency residency = ProbeFiles(files);
  if (!residency.fraction()) GTEST_SKIP() << residency.unknown_reason;
  EXPECT_EQ(*residency.fraction(), 1.0);
}

TEST(PrepareCache, ColdIsProvenOrRefused) {
  TempDir dir;
  const std::vector<std::string> files = {
      dir.Write("a", std::string(3 << 20, 'a'))};
  const absl::Status status = PrepareCache("cold", files);
  const Residency residency = ProbeFiles(files);
  if (status.ok()) {
    ASSERT_TRUE(residency.fraction().has_value());
    EXPECT_LE(*residency.fraction(), kColdShare);
  } else {
    // A file system that keeps its pages, or a kernel that does not say.
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("evicted, but")));
  }
}

TEST(PrepareCache, ColdOnTmpfsIsRefused) {
  const auto system = DescribeFileSystem("/dev/shm");
  if (!system.ok() || system->kind != FileSystemKind::kMemory) {
    GTEST_SKIP() << "/dev/shm is not in memory here";
  }
  const std::string file = "/dev/shm/firstframe_cache_state_test";
  ASSERT_EQ(std::system(("head -c 100000 /dev/zero >" + file).c_str()), 0);
  EXPECT_THAT(
      PrepareCache("cold", {file}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("tmpfs")));
  std::remove(file.c_str());
}

TEST(PrepareCache, AMissingFileIsAnError) {
  EXPECT_THAT(PrepareCache("warm", {"/no/such/file"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
  EXPECT_THAT(PrepareCache("as_is", {"/no/such/file"}), IsOk());
}

TEST(ProbeFiles, IsUnknownWhenAnyFileIs) {
  const Residency residency = ProbeFiles({"/no/such/file"});
  EXPECT_FALSE(residency.fraction().has_value());
  EXPECT_THAT(residency.unknown_reason, HasSubstr("/no/such/file"));
}

}  // namespace
}  // namespace firstframe
