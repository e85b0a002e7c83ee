#include "lib/load/residency_map.h"

#include <fcntl.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::TempDir;
using State = ResidencyMap::State;

TEST(ResidencyMap, SumsAndStretchesAgreeWithOneProbe) {
  TempDir dir;
  // 70 MiB: three stretches; and an empty file.
  ASSERT_OK_AND_ASSIGN(
      const DataFile large,
      DataFile::Open(dir.Write("large", std::string(70 << 20, 'x'))));
  ASSERT_OK_AND_ASSIGN(const DataFile empty,
                       DataFile::Open(dir.Write("empty", "")));
  const std::vector<const DataFile*> files = {&large, &empty};
  if (!ProbeResidency(large).cached_pages) GTEST_SKIP();

  const ResidencyMap warm(files, 4);
  EXPECT_EQ(warm.total().total_pages, uint64_t{70 << 8});
  EXPECT_EQ(warm.total().fraction(), 1.0);
  EXPECT_EQ(warm.StateOf(0, 0, 70 << 20), State::kIn);

  const ResidencyMap sampled(files, 4, ResidencyMap::Detail::kSample);
  EXPECT_EQ(sampled.total().fraction(), 1.0);
  EXPECT_LE(sampled.total().total_pages, 35u + 256u);
  EXPECT_EQ(sampled.StateOf(0, 0, 70 << 20), State::kIn);

  ASSERT_THAT(EvictFromPageCache(large), IsOk());
  if (ProbeResidency(large).fraction() != 0.0) GTEST_SKIP() << "not evicted";
  // Without readahead one page comes back, in the middle stretch.
  ::posix_fadvise(large.fd(), 0, 0, POSIX_FADV_RANDOM);
  std::byte buffer[1];
  ASSERT_THAT(large.Read(40 << 20, buffer), IsOk());
  const ResidencyMap mixed(files, 4);
  EXPECT_GE(*mixed.total().cached_pages, 1u);
  EXPECT_EQ(mixed.StateOf(0, 0, 1 << 20), State::kOut);
  EXPECT_EQ(mixed.StateOf(0, 33 << 20, 34 << 20), State::kMixed);
  EXPECT_EQ(mixed.StateOf(0, 0, 40 << 20), State::kMixed);
  EXPECT_EQ(mixed.StateOf(0, 65 << 20, 70 << 20), State::kOut);
  EXPECT_EQ(mixed.StateOf(1, 0, 0), State::kIn);
  // The page that is in is one of those a sample looks at.
  const ResidencyMap found(files, 4, ResidencyMap::Detail::kSample);
  EXPECT_EQ(found.StateOf(0, 33 << 20, 34 << 20), State::kMixed);
  EXPECT_EQ(found.StateOf(0, 65 << 20, 70 << 20), State::kOut);
}

TEST(ResidencyMap, NoFilesAtAll) {
  const ResidencyMap none({}, 4);
  EXPECT_EQ(none.total().fraction(), 1.0);
}

}  // namespace
}  // namespace firstframe
