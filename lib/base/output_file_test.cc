#include "lib/base/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

size_t FilesIn(const TempDir& dir) {
  return std::distance(std::filesystem::directory_iterator(dir.path()), {});
}

TEST(OutputFile, AppearsAtCommitOnly) {
  TempDir dir;
  const std::string path = dir.File("out.json");
  {
    ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create(path));
    ASSERT_THAT(file.Write("whole"), IsOk());
    EXPECT_FALSE(std::filesystem::exists(path));
    ASSERT_THAT(file.WriteAt(0, "W"), IsOk());
    ASSERT_THAT(file.Commit(/*sync=*/true), IsOk());
  }
  EXPECT_EQ(ReadFile(path), "Whole");
  EXPECT_EQ(FilesIn(dir), 1u);
}

TEST(OutputFile, AbandonedLeavesTheTargetAsItWas) {
  TempDir dir;
  const std::string path = dir.Write("out.json", "old");
  {
    ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create(path));
    ASSERT_THAT(file.Write("new"), IsOk());
  }
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_EQ(FilesIn(dir), 1u);
}

TEST(OutputFile, KeepsModeAndFollowsLinks) {
  TempDir dir;
  const std::string path = dir.Write("real.json", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const std::string link = dir.File("link.json");
  ASSERT_EQ(::symlink("real.json", link.c_str()), 0);
  ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create(link));
  ASSERT_THAT(file.Write("new"), IsOk());
  ASSERT_THAT(file.Commit(), IsOk());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(OutputFile, IsWrittenInOneCall) {
  TempDir dir;
  const std::string path = dir.Write("out.json", "old");
  EXPECT_THAT(WriteOutputFile(path, "new"), IsOk());
  EXPECT_EQ(ReadFile(path), "new");
  EXPECT_EQ(FilesIn(dir), 1u);
  EXPECT_THAT(WriteOutputFile(dir.File("no/out.json"), "new"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("out.json")));
  EXPECT_THAT(
      WriteOutputFile("/dev/full", "x"),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("/dev/full")));
}

TEST(OutputFile, LeavesNothingWhenTheProcessIsKilled) {
  TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = OutputFile::Create(dir.File("out.json"));
    if (!file.ok() || !file->Write("half").ok()) ::_exit(1);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const int fd = ::open(dir.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "a file system without files without names";
  ::close(fd);
  EXPECT_EQ(FilesIn(dir), 0u);
}

TEST(OutputFile, MissingFolderIsAnErrorAtOnce) {
  TempDir dir;
  EXPECT_THAT(OutputFile::Create(dir.File("no/such/out.json")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("out.json")));
}

TEST(OutputFile, FullDiskIsAnError) {
  ASSERT_OK_AND_ASSIGN(OutputFile file, OutputFile::Create("/dev/full"));
  EXPECT_THAT(file.Write("x"), StatusIs(absl::StatusCode::kResourceExhausted,
                                        HasSubstr("/dev/full")));
}

}  // namespace
}  // namespace firstframe
