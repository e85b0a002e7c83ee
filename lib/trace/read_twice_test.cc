#include "lib/trace/read_twice.h"

#include <sys/stat.h>

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

TEST(ReadTwice, FilesAndNotPipes) {
  const TempDir dir;
  EXPECT_THAT(CheckReadableTwice(dir.Write("t.json", "[]")), IsOk());
  EXPECT_THAT(CheckReadableTwice(dir.File("absent")), IsOk());
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/null")}) {
    EXPECT_THAT(CheckReadableTwice(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
  EXPECT_THAT(CheckReadableTwice("-"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("standard input")));
}

}  // namespace
}  // namespace firstframe
