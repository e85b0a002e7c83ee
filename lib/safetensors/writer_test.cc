#include "lib/safetensors/writer.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/safetensors/header.h"
#include "lib/safetensors/sharded_writer.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::firstframe::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Span<const std::byte> Bytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(text.data()),
                             text.size());
}

TEST(SafetensorsWriter, WritesTheLargestAlignmentFirstThenByName) {
  const TempDir dir;
  const std::string path = dir.File("m.safetensors");
  const NamedTensor tensors[] = {
      {"u", {DType::kU8, {3}, Bytes("uuu")}},
      {"b", {DType::kF32, {1}, Bytes("bbbb")}},
      {"a", {DType::kF32, {1}, Bytes("aaaa")}},
      {"h", {DType::kBF16, {}, Bytes("hh")}},
  };
  ASSERT_THAT(WriteSafetensors(path, tensors, {{"format", "pt"}}), IsOk());
  const std::string file = ReadFile(path);
  // The reference's bytes for the same tensors: save() of safetensors 0.8.
  std::string expected =
      R"({"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
      R"("h":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
      R"("u":{"dtype":"U8","shape":[3],"data_offsets":[10,13]}})";
  while (expected.size() % 8 != 0) expected += ' ';
  EXPECT_EQ(file.substr(8), expected + "aaaabbbbhhuuu");
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length, expected.size());
  EXPECT_TRUE(
      CheckSafetensorsHeader(path, file, file.size(), Strictness::kStrict)
          .findings.empty());
}

TEST(SafetensorsWriter, TensorsComeInAnyOrderAndInParts) {
  const TempDir dir;
  const std::string path = dir.File("m.safetensors");
  ASSERT_OK_AND_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(
          path, {{"x", DType::kU8, {4}}, {"y", DType::kU8, {2}}}));
  ASSERT_THAT(writer.Write("y", Bytes("yY")), IsOk());
  ASSERT_THAT(writer.WritePart("x", 2, Bytes("34")), IsOk());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_THAT(writer.WritePart("x", 0, Bytes("12")), IsOk());
  ASSERT_THAT(writer.Finish(), IsOk());
  EXPECT_TRUE(absl::EndsWith(ReadFile(path), "1234yY"));
}

TEST(SafetensorsWriter, NothingAppearsUntilAllIsWritten) {
  const TempDir dir;
  const std::string path = dir.File("m.safetensors");
  {
    ASSERT_OK_AND_ASSIGN(
        SafetensorsWriter writer,
        SafetensorsWriter::Create(path, {{"x", DType::kU8, {4}}}));
    EXPECT_THAT(writer.Write("x", Bytes("123")),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("3 bytes, expected 4")));
    EXPECT_THAT(
        writer.Write("z", Bytes("1")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"z\"")));
    EXPECT_THAT(
        writer.WritePart("x", 3, Bytes("12")),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at byte 3")));
    ASSERT_THAT(writer.WritePart("x", 0, Bytes("12")), IsOk());
    EXPECT_THAT(writer.Finish(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("2 bytes written, expected 4")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(SafetensorsWriter, RefusesWhatNobodyCouldRead) {
  const auto plan = [](std::vector<TensorSpec> specs,
                       SafetensorsMetadata metadata = {}) {
    return PlanSafetensors(std::move(specs), metadata).status();
  };
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(plan({{"a", DType::kU8, {1}}, {"a", DType::kF32, {1}}}),
              invalid("twice"));
  EXPECT_THAT(plan({{"__metadata__", DType::kU8, {1}}}), invalid("metadata"));
  EXPECT_THAT(plan({{std::string("a\0", 2), DType::kU8, {1}}}), invalid("NUL"));
  EXPECT_THAT(plan({{"\xFF", DType::kU8, {1}}}), invalid("UTF-8"));
  EXPECT_THAT(plan({{"a", DType::kF4, {3}}}), invalid("whole bytes"));
  EXPECT_THAT(plan({{"a", DType::kU8, {-1}}}), invalid("whole bytes"));
  EXPECT_THAT(plan({}, {{"k", "1"}, {"k", "2"}}), invalid("twice"));
  EXPECT_THAT(plan({{std::string(100'000'000, 'n'), DType::kU8, {1}}}),
              invalid("at most 100000000"));
}

TEST(SafetensorsWriter, NamesAreEscaped) {
  const TempDir dir;
  const std::string path = dir.File("m.safetensors");
  const std::string name = "a\"\\\n\x01\xC3\xA9";
  ASSERT_THAT(WriteSafetensors(path, {{{name, {DType::kU8, {0}, {}}}}}),
              IsOk());
  const std::string file = ReadFile(path);
  ASSERT_OK_AND_ASSIGN(const auto header,
                       ParseSafetensorsHeader(path, file, file.size()));
  EXPECT_EQ(header.tensors[0].name, name);
}

TEST(ShardedWriter, SplitsEvenlyAndItsIndexAgrees) {
  const TempDir dir;
  std::vector<TensorSpec> specs;
  for (int i = 0; i < 10; ++i) {
    specs.push_back({absl::StrCat("t", i), DType::kU8, {100}});
  }
  ASSERT_OK_AND_ASSIGN(
      auto writer, ShardedSafetensorsWriter::Create(dir.path(), "model", specs,
                                                    {{"format", "pt"}}, 3));
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(
        writer.Write(absl::StrCat("t", i), Bytes(std::string(100, '0' + i))),
        IsOk());
  }
  ASSERT_THAT(writer.Finish(), IsOk());
  EXPECT_EQ(writer.paths().size(), 4u);
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       Checkpoint::Open(dir.path()));
  EXPECT_TRUE(checkpoint.warnings().empty());
  ASSERT_EQ(checkpoint.files().size(), 3u);
  EXPECT_EQ(checkpoint.files()[0].path,
            dir.File("model-00001-of-00003.safetensors"));
  EXPECT_EQ(checkpoint.files()[0].header.tensors.size(), 4u);
  EXPECT_EQ(checkpoint.files()[1].header.tensors.size(), 3u);
  EXPECT_EQ(checkpoint.size_bytes(), 1000u);
  ASSERT_OK_AND_ASSIGN(const auto reader, CheckpointReader::Open(checkpoint));
  ASSERT_NE(checkpoint.Find("t7"), nullptr);
  ASSERT_OK_AND_ASSIGN(const HostTensor tensor,
                       reader.Read(*checkpoint.Find("t7")));
  EXPECT_THAT(tensor.data<uint8_t>(), ::testing::Each('7'));
}

TEST(ShardedWriter, OneShardHasNoIndex) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      auto writer, ShardedSafetensorsWriter::Create(
                       dir.path(), "model", {{"t", DType::kU8, {1}}}, {}, 5));
  ASSERT_THAT(writer.Write("t", Bytes("x")), IsOk());
  ASSERT_THAT(writer.Finish(), IsOk());
  EXPECT_EQ(writer.paths(),
            std::vector<std::string>{dir.File("model.safetensors")});
}

TEST(ShardedWriter, EveryShardHasATensorHoweverLargeTheFirst) {
  const TempDir dir;
  ASSERT_OK_AND_ASSIGN(
      auto writer, ShardedSafetensorsWriter::Create(dir.path(), "m",
                                                    {{"a", DType::kU8, {1000}},
                                                     {"b", DType::kU8, {1}},
                                                     {"c", DType::kU8, {1}}},
                                                    {}, 3));
  ASSERT_THAT(writer.Write("a", Bytes(std::string(1000, 'a'))), IsOk());
  EXPECT_THAT(writer.Finish(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                        HasSubstr("m-00002-of-00003")));
  ASSERT_THAT(writer.Write("b", Bytes("b")), IsOk());
  ASSERT_THAT(writer.Write("c", Bytes("c")), IsOk());
  EXPECT_THAT(writer.Finish(), IsOk());
  ASSERT_OK_AND_ASSIGN(const Checkpoint checkpoint,
                       Checkpoint::Open(dir.path()));
  EXPECT_EQ(checkpoint.files().size(), 3u);
}

}  // namespace
}  // namespace firstframe
