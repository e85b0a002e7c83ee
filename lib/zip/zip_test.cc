#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "lib/zip/zip_reader.h"
#include "lib/zip/zip_writer.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::HasSubstr;

constexpr uint64_t kNoLimit = ~uint64_t{0};

std::string WriteArchive(const TempDir& dir) {
  const std::string path = dir.File("a.zip");
  auto writer = ZipWriter::Create(path);
  EXPECT_THAT(writer, IsOk());
  EXPECT_THAT(writer->Add("one", "first"), IsOk());
  EXPECT_THAT(writer->Add("data/2", std::string(1000, 'x'), 64), IsOk());
  EXPECT_THAT(writer->Add("empty", "", 64), IsOk());
  EXPECT_THAT(writer->Finish(), IsOk());
  return path;
}

TEST(Zip, RoundTrip) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(const ZipReader reader,
                       ZipReader::Open(WriteArchive(dir)));
  ASSERT_EQ(reader.members().size(), 3u);
  EXPECT_EQ(reader.members()[1].name, "data/2");
  EXPECT_THAT(reader.Read(reader.members()[0], kNoLimit),
              IsOkAndHolds("first"));
  EXPECT_THAT(reader.Read(reader.members()[1], kNoLimit),
              IsOkAndHolds(std::string(1000, 'x')));
  EXPECT_THAT(reader.Read(reader.members()[2], kNoLimit), IsOkAndHolds(""));
  EXPECT_THAT(
      reader.Read(reader.members()[1], 999),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 999")));
}

TEST(Zip, DataBeginAligned) {
  const TempDir dir;
  const std::string file = ReadFile(WriteArchive(dir));
  EXPECT_EQ(file.find("xxxx") % 64, 0u);
}

TEST(Zip, RefusesNamesThatClash) {
  const TempDir dir;
  auto writer = ZipWriter::Create(dir.File("a.zip"));
  EXPECT_THAT(writer->Add("a", "1"), IsOk());
  EXPECT_THAT(writer->Add("a", "2"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  EXPECT_THAT(writer->Add("", "2"), StatusIs(absl::StatusCode::kInvalidArgument,
                                             HasSubstr("0 bytes")));
}

TEST(Zip, DamageIsAnErrorEverywhere) {
  const TempDir dir;
  const std::string file = ReadFile(WriteArchive(dir));
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string path = dir.Write("cut.zip", file.substr(0, size));
    EXPECT_FALSE(ZipReader::Open(path).ok()) << size;
  }
  for (size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] ^= 0x55;
    const auto reader = ZipReader::Open(dir.Write("bad.zip", damaged));
    if (!reader.ok()) continue;
    for (const ZipMember& member : reader->members()) {
      (void)reader->Read(member, 1 << 20);  // must not crash
    }
  }
  std::string damaged = file;
  damaged[file.find("first")] = 'F';
  ASSERT_OK_AND_ASSIGN(const ZipReader reader,
                       ZipReader::Open(dir.Write("bad.zip", damaged)));
  EXPECT_THAT(reader.Read(reader.members()[0], kNoLimit),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
}

}  // namespace
}  // namespace firstframe
