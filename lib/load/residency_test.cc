#include "lib/load/residency.h"

#include <string>

#include "gtest/gtest.h"
#include "lib/load/file_system.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::TempDir;

constexpr uint64_t kMiB = 1 << 20;

class ResidencyTest : public ::testing::TestWithParam<ResidencyMethod> {};

TEST_P(ResidencyTest, FollowsEvictionAndReading) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      const DataFile file,
      DataFile::Open(dir.Write("f", std::string(8 * kMiB, 'x'))));
  const auto probe = [&](uint64_t offset, uint64_t size) {
    return ProbeResidency(file, offset, size, GetParam());
  };
  Residency all = probe(0, file.size_bytes());
  if (!all.cached_pages) GTEST_SKIP() << all.unknown_reason;
  EXPECT_EQ(all.total_pages, 2048u);
  EXPECT_EQ(all.cached_pages, 2048u) << "just written";

  ASSERT_THAT(EvictFromPageCache(file), IsOk());
  all = probe(0, file.size_bytes());
  ASSERT_OK_AND_ASSIGN(const FileSystem fs, DescribeFileSystem(file.path()));
  if (fs.kind == FileSystemKind::kMemory) {
    EXPECT_EQ(all.fraction(), 1.0) << "a file in memory cannot be cold";
    return;
  }
  EXPECT_LT(*all.fraction(), 0.01);

  ASSERT_THAT(FillPageCache(file), IsOk());
  EXPECT_EQ(probe(0, file.size_bytes()).fraction(), 1.0);
}

TEST_P(ResidencyTest, ClipsToTheFileAndCountsTouchedPages) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("f", std::string(10000, 'x'))));
  const auto pages = [&](uint64_t offset, uint64_t size) {
    return ProbeResidency(file, offset, size, GetParam()).total_pages;
  };
  EXPECT_EQ(pages(0, 10000), 3u);
  EXPECT_EQ(pages(4095, 2), 2u);
  EXPECT_EQ(pages(8192, 1 << 30), 1u);
  EXPECT_EQ(pages(20000, 5), 0u);
  EXPECT_EQ(ProbeResidency(file, 0, 0, GetParam()).fraction(), 1.0);
}

INSTANTIATE_TEST_SUITE_P(Methods, ResidencyTest,
                         ::testing::Values(ResidencyMethod::kAuto,
                                           ResidencyMethod::kCachestat,
                                           ResidencyMethod::kMincore));

TEST(Residency, UnknownPlusAnythingIsUnknown) {
  Residency sum;
  Residency part;
  part.total_pages = 2;
  part.cached_pages = 1;
  part.method = "cachestat";
  AddResidency(part, &sum);
  EXPECT_EQ(sum.fraction(), 0.5);
  part.cached_pages = 2;
  AddResidency(part, &sum);
  EXPECT_EQ(sum.fraction(), 0.75);
  Residency unknown;
  unknown.total_pages = 1;
  unknown.method = "none";
  unknown.unknown_reason = "why";
  AddResidency(unknown, &sum);
  EXPECT_EQ(sum.fraction(), std::nullopt);
  EXPECT_EQ(sum.unknown_reason, "why");
  EXPECT_EQ(sum.total_pages, 5u);
}

}  // namespace
}  // namespace firstframe
