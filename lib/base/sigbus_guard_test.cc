#include "lib/base/sigbus_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

constexpr size_t kSize = 64 << 10;

// A mapping of `kSize` bytes whose file was cut to one page.
const char* CutMapping(const testing::TempDir& dir) {
  const std::string path = dir.Write("f", std::string(kSize, 'x'));
  const int fd = ::open(path.c_str(), O_RDWR);
  void* const map = ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED || ::ftruncate(fd, ::sysconf(_SC_PAGESIZE)) != 0) {
    return nullptr;
  }
  ::close(fd);
  return static_cast<const char*>(map);
}

TEST(SigbusGuard, SaysWhatCannotBeRead) {
  const testing::TempDir dir;
  const char* const map = CutMapping(dir);
  ASSERT_NE(map, nullptr);
  char buffer[kSize];
  EXPECT_TRUE(CopyFromMapping(buffer, map, 100));
  EXPECT_EQ(std::string(buffer, 100), std::string(100, 'x'));
  for (int i = 0; i < 3; ++i) {  // and goes on saying so
    EXPECT_FALSE(CopyFromMapping(buffer, map, kSize));
    EXPECT_FALSE(CopyFromMapping(buffer, map + kSize - 1, 1));
    EXPECT_TRUE(CopyFromMapping(buffer, map, 100));
  }
}

// A fault elsewhere must still end the process.
TEST(SigbusGuardDeathTest, LeavesOtherFaultsAlone) {
  const testing::TempDir dir;
  const char* const map = CutMapping(dir);
  ASSERT_NE(map, nullptr);
  char buffer[1];
  ASSERT_TRUE(CopyFromMapping(buffer, map, 1));
  EXPECT_DEATH((void)*const_cast<const volatile char*>(map + kSize - 1), "");
}

}  // namespace
}  // namespace firstframe
