#include "lib/load/data_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Counting(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 7 + i / 256);
  return text;
}

TEST(DataFile, ReadsAnyRange) {
  TempDir dir;
  const std::string text = Counting(10000);
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("f", text)));
  EXPECT_EQ(file.size_bytes(), 10000u);
  for (const size_t offset : {0u, 1u, 4095u, 9999u, 10000u}) {
    std::string got(10000 - offset, 'x');
    ASSERT_THAT(file.Read(offset, absl::MakeSpan(
                                      reinterpret_cast<std::byte*>(got.data()),
                                      got.size())),
                IsOk());
    EXPECT_EQ(got, text.substr(offset));
  }
}

TEST(DataFile, EndOfFileSaysWhereAndHowMuch) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("short", Counting(100))));
  std::vector<std::byte> buffer(50);
  EXPECT_THAT(file.Read(70, absl::MakeSpan(buffer)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("short"),
                             HasSubstr("wanted 50 at byte 70, got 30"))));
}

TEST(DataFile, ScattersOverMorePartsThanOneCallTakes) {
  TempDir dir;
  const std::string text = Counting(30000);
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("f", text)));
  // 3000 parts of 0 to 9 bytes at a stride of 16.
  std::string arena(3000 * 16, '.');
  std::vector<iovec> parts;
  std::string expected = arena;
  size_t at = 5;
  for (size_t i = 0; i < 3000; ++i) {
    const size_t size = i % 10;
    parts.push_back({arena.data() + i * 16, size});
    std::memcpy(expected.data() + i * 16, text.data() + at, size);
    at += size;
  }
  ASSERT_THAT(file.ReadScattered(5, absl::MakeSpan(parts)), IsOk());
  EXPECT_EQ(arena, expected);
}

TEST(DataFile, ScatteredReadPastTheEndIsAnError) {
  TempDir dir;
  ASSERT_OK_AND_ASSIGN(const DataFile file,
                       DataFile::Open(dir.Write("f", Counting(10))));
  std::string buffer(20, '.');
  iovec parts[] = {{buffer.data(), 8}, {buffer.data() + 8, 8}};
  EXPECT_THAT(file.ReadScattered(0, parts),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at byte 10")));
}

TEST(DataFile, RefusesWhatIsNoFile) {
  TempDir dir;
  EXPECT_THAT(DataFile::Open(dir.path()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found a folder, expected a file")));
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      DataFile::Open(dir.File("pipe")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found a pipe")))
      << "and without waiting for a writer";
  EXPECT_THAT(DataFile::Open(dir.File("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("absent")));
}

TEST(DataFile, NoticesTruncationAndReplacement) {
  TempDir dir;
  const std::string path = dir.Write("f", Counting(100));
  ASSERT_OK_AND_ASSIGN(const DataFile file, DataFile::Open(path));
  EXPECT_THAT(file.CheckUnchanged(), IsOk());
  ASSERT_EQ(::truncate(path.c_str(), 60), 0);
  EXPECT_THAT(
      file.CheckUnchanged(),
      StatusIs(absl::StatusCode::kAborted, HasSubstr("from 100 to 60 bytes")));
  ASSERT_OK_AND_ASSIGN(const DataFile again, DataFile::Open(path));
  ASSERT_EQ(::rename(dir.Write("g", Counting(60)).c_str(), path.c_str()), 0);
  EXPECT_THAT(again.CheckUnchanged(),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("another file took its place")));
}

}  // namespace
}  // namespace firstframe
