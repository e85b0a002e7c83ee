#include "lib/load/direct_io.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "lib/load/residency.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

TEST(DirectIo, ReadsTheBytesAndLeavesTheCacheAlone) {
  TempDir dir;
  std::string text(1 << 20, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i >> 5);
  const std::string path = dir.Write("f", text);
  absl::StatusOr<DirectFile> direct = OpenDirect(path);
  if (absl::IsUnavailable(direct.status())) GTEST_SKIP() << direct.status();
  ASSERT_THAT(direct, IsOk());
  ASSERT_THAT(EvictFromPageCache(direct->file), IsOk());
  std::byte* buffer = static_cast<std::byte*>(
      ::aligned_alloc(direct->memory_alignment, text.size()));
  ASSERT_THAT(direct->file.Read(0, absl::MakeSpan(buffer, text.size())),
              IsOk());
  EXPECT_EQ(std::memcmp(buffer, text.data(), text.size()), 0);
  ::free(buffer);
  const Residency after = ProbeResidency(direct->file);
  EXPECT_LT(after.fraction().value_or(0), 0.01);
}

TEST(DirectIo, MemoryFileSystemsAreUnavailable) {
  char path[] = "/dev/shm/firstframe_direct_XXXXXX";
  const int fd = ::mkstemp(path);
  if (fd < 0) GTEST_SKIP() << "no /dev/shm";
  EXPECT_THAT(OpenDirect(path),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("directly")));
  ::unlink(path);
  ::close(fd);
}

TEST(DirectIo, MissingFileKeepsItsCode) {
  TempDir dir;
  EXPECT_THAT(OpenDirect(dir.File("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

}  // namespace
}  // namespace firstframe
