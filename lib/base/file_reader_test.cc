#include "lib/base/file_reader.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
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

class FileReaderTest : public ::testing::TestWithParam<ReadMethod> {
 protected:
  std::string ReadString(const FileReader& reader, uint64_t offset,
                         size_t size) {
    std::string text(size, '?');
    const absl::Status status = reader.Read(
        offset,
        absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), size));
    return status.ok() ? text : std::string(status.message());
  }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Methods, FileReaderTest,
                         ::testing::Values(ReadMethod::kPread,
                                           ReadMethod::kMmap));

TEST_P(FileReaderTest, ReadsAnywhere) {
  const std::string path = dir_.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  EXPECT_EQ(reader->method(), GetParam()) << reader->fallback_reason();
  EXPECT_EQ(reader->size_bytes(), 10u);
  EXPECT_EQ(ReadString(*reader, 0, 10), "0123456789");
  EXPECT_EQ(ReadString(*reader, 3, 4), "3456");
  EXPECT_EQ(ReadString(*reader, 10, 0), "");
  EXPECT_THAT(reader->CheckUnchanged(), IsOk());
}

TEST_P(FileReaderTest, ReadsPastTheEndAreErrors) {
  const std::string path = dir_.Write("f", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  std::byte buffer[8];
  EXPECT_THAT(reader->Read(6, absl::MakeSpan(buffer)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(path), HasSubstr("byte 10"),
                             HasSubstr("wanted 8 at byte 6, got 4"))));
  EXPECT_THAT(reader->Read(1000, absl::MakeSpan(buffer)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("got 0")));
}

// The reader of a mapping must not die of SIGBUS here.
TEST_P(FileReaderTest, SurvivesTruncationWhileOpen) {
  const std::string path = dir_.Write("f", std::string(1 << 20, 'x'));
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  ASSERT_EQ(::truncate(path.c_str(), 5000), 0);
  EXPECT_EQ(ReadString(*reader, 0, 5000), std::string(5000, 'x'));
  EXPECT_THAT(ReadString(*reader, 0, 1 << 20),
              HasSubstr("wanted 1048576 at byte 0, got 5000"));
  EXPECT_THAT(ReadString(*reader, 1 << 19, 100), HasSubstr("got 0"));
  EXPECT_THAT(reader->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("from 1048576 to 5000 bytes")));
}

TEST_P(FileReaderTest, ThreadsSurviveTruncation) {
  constexpr size_t kSize = 8 << 20;
  const std::string path = dir_.Write("f", std::string(kSize, 'x'));
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<std::byte> buffer(kSize);
      while (reader->Read(0, absl::MakeSpan(buffer)).ok()) {
      }
    });
  }
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  for (std::thread& thread : threads) thread.join();
}

TEST_P(FileReaderTest, SeesAReplacedFile) {
  const std::string path = dir_.Write("f", "abcd");
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  const std::string other = dir_.Write("g", "efgh");
  ASSERT_EQ(std::rename(other.c_str(), path.c_str()), 0);
  EXPECT_THAT(reader->CheckUnchanged(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("another file took its place")));
  EXPECT_EQ(ReadString(*reader, 0, 4), "abcd");
  ASSERT_EQ(::unlink(path.c_str()), 0);
  EXPECT_THAT(
      reader->CheckUnchanged(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("went away")));
}

TEST_P(FileReaderTest, RefusesWhatIsNoFile) {
  EXPECT_THAT(FileReader::Open(dir_.File("none"), GetParam()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(FileReader::Open(dir_.path(), GetParam()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("found a folder, expected a file")));
  ASSERT_EQ(::mkfifo(dir_.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(
      FileReader::Open(dir_.File("pipe"), GetParam()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found a pipe")));
}

TEST_P(FileReaderTest, OpensAnEmptyFile) {
  const std::string path = dir_.Write("f", "");
  ASSERT_OK_AND_ASSIGN(const auto reader, FileReader::Open(path, GetParam()));
  EXPECT_EQ(reader->size_bytes(), 0u);
  EXPECT_EQ(ReadString(*reader, 0, 0), "");
}

TEST(FileReader, FallsBackWhereAFileCannotBeMapped) {
  // sysfs and procfs attributes are regular files that refuse a mapping or have
  // no size to map.
  const auto reader = FileReader::Open(
      "/sys/kernel/mm/transparent_hugepage/enabled", ReadMethod::kMmap);
  if (!reader.ok()) GTEST_SKIP() << reader.status();
  EXPECT_EQ((*reader)->method(), ReadMethod::kPread);
  EXPECT_FALSE((*reader)->fallback_reason().empty());
  std::byte first[1];
  EXPECT_THAT((*reader)->Read(0, absl::MakeSpan(first)), IsOk());
}

TEST(ReadFully, GoesOnAfterEintrAndShortReads) {
  int calls = 0;
  std::vector<std::byte> target(10);
  const auto pread = [&](std::byte* data, size_t size,
                         uint64_t offset) -> int64_t {
    if (calls++ % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    EXPECT_LE(size, 10u);
    *data = std::byte(offset);
    return 1;
  };
  ASSERT_THAT(ReadFully(pread, "f", 100, absl::MakeSpan(target)), IsOk());
  EXPECT_EQ(calls, 20);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(target[i], std::byte(100 + i));
}

TEST(ReadFully, AsksForWhatLinuxGivesAtMost) {
  // Never touched: the function below only counts.
  const auto huge =
      absl::MakeSpan(reinterpret_cast<std::byte*>(4096), size_t{5} << 30);
  std::vector<size_t> sizes;
  const auto pread = [&](std::byte*, size_t size, uint64_t) -> int64_t {
    sizes.push_back(size);
    return static_cast<int64_t>(size);
  };
  ASSERT_THAT(ReadFully(pread, "f", 0, huge), IsOk());
  EXPECT_THAT(sizes, ::testing::ElementsAre(
                         0x7ffff000u, 0x7ffff000u,
                         (size_t{5} << 30) - 2 * size_t{0x7ffff000}));
}

TEST(ReadFully, ErrorsCarryPathAndPosition) {
  std::vector<std::byte> target(10);
  const auto pread = [](std::byte*, size_t, uint64_t) -> int64_t {
    errno = EIO;
    return -1;
  };
  const absl::Status status = ReadFully(pread, "f", 7, absl::MakeSpan(target));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("f: cannot read 10 bytes at byte 7"),
                    HasSubstr(std::strerror(EIO))));
}

}  // namespace
}  // namespace firstframe
