#include "lib/observe/file_cache.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;

TEST(FilesOf, NamesEachFileOnce) {
  ObservedProcess process;
  process.events = {{.kind = EventKind::kLibrary, .name = "/lib/libc.so.6"},
                    {.kind = EventKind::kLibrary, .name = "linux-vdso.so.1"},
                    {.kind = EventKind::kDlopen, .name = "/lib/a.so"}};
  process.files = {{.path = "/m/model.safetensors"}, {.path = "relative.bin"}};
  process.module_files = {"/p/torch.pyc", "/lib/libc.so.6"};
  EXPECT_THAT(
      FilesOf(std::vector<ObservedProcess>{process, process}),
      ElementsAre("/lib/libc.so.6", "/m/model.safetensors", "/p/torch.pyc"));
}

TEST(EvictFiles, SaysWhatStays) {
  const testing::TempDir dir;
  const std::string path = dir.Write("a.bin", std::string(1 << 20, 'x'));
  const FileCacheState state =
      EvictFiles(std::vector<std::string>{path, "/no/such/file"});
  EXPECT_EQ(state.files, 1);
  EXPECT_EQ(state.size_bytes, 1 << 20);
  // A file system in memory keeps all; one on a disk lets go.
  if (state.resident_share) {
    EXPECT_GE(*state.resident_share, 0.0);
    EXPECT_LE(*state.resident_share, 1.0);
  }
  EXPECT_FALSE(EvictFiles({}).resident_share.has_value());
}

}  // namespace
}  // namespace firstframe
