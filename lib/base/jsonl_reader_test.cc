#include "lib/base/jsonl_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Lines(JsonlReader& reader) {
  std::vector<std::string> lines;
  while (true) {
    const auto line = reader.Next();
    EXPECT_THAT(line, IsOk());
    if (!line.ok() || !line->has_value()) return lines;
    lines.push_back(std::to_string((*line)->number) + "@" +
                    std::to_string((*line)->offset) + " " +
                    std::string((*line)->text));
  }
}

TEST(JsonlReader, SkipsMarkBlankLinesAndCarriageReturns) {
  JsonlReader reader = JsonlReader::ForText(
      "\xEF\xBB\xBF{\"a\":1}\r\n\n  \t\r\n{\"b\":2}\n{\"torn\"", "x");
  EXPECT_THAT(Lines(reader), ElementsAre("1@0 {\"a\":1}", "4@18 {\"b\":2}"));
  const auto rest = reader.Rest();
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(std::string(rest->text), "{\"torn\"");
  EXPECT_EQ(rest->number, 5);
  EXPECT_EQ(rest->offset, 26);
}

TEST(JsonlReader, EmptyInputsHaveNoLines) {
  for (const char* text : {"", "\n", "\xEF\xBB\xBF", "\r\n  \n", "   "}) {
    JsonlReader reader = JsonlReader::ForText(text, "x");
    EXPECT_THAT(Lines(reader), ElementsAre()) << text;
    EXPECT_FALSE(reader.Rest().has_value()) << text;
  }
}

// Whatever the cut, whole lines come out whole and the rest is the rest.
TEST(JsonlReader, SplitsTheSameAtEveryTruncation) {
  const std::string text = "{\"a\":1}\r\n{}\n\n[3]\n";
  for (size_t size = 0; size <= text.size(); ++size) {
    JsonlReader reader = JsonlReader::ForText(text.substr(0, size), "x");
    std::string joined;
    for (const std::string& line : Lines(reader)) {
      joined += line.substr(line.find(' ') + 1) + "|";
    }
    const auto rest = reader.Rest();
    if (rest) joined += "+" + std::string(rest->text);
    EXPECT_LE(joined.size(), size + 6);
    if (size == text.size()) {
      EXPECT_EQ(joined, "{\"a\":1}|{}|[3]|");
    }
  }
}

TEST(JsonlReader, ReadsLinesLongerThanItsBuffer) {
  const TempDir dir;
  const std::string big = "[\"" + std::string(5 << 20, 'x') + "\"]";
  const std::string path = dir.Write("f", "1\n" + big + "\n2\n");
  ASSERT_OK_AND_ASSIGN(JsonlReader reader, JsonlReader::Open(path));
  const std::vector<std::string> lines = Lines(reader);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "2@2 " + big);
  EXPECT_EQ(reader.bytes_read(), static_cast<int64_t>(big.size()) + 5);
}

TEST(JsonlReader, FollowsAGrowingFile) {
  const TempDir dir;
  const std::string path = dir.Write("f", "1\n2");
  ASSERT_OK_AND_ASSIGN(JsonlReader reader, JsonlReader::Open(path));
  EXPECT_THAT(Lines(reader), ElementsAre("1@0 1"));
  EXPECT_EQ(std::string(reader.Rest()->text), "2");
  std::ofstream(path, std::ios::app) << "2\n3";
  EXPECT_THAT(Lines(reader), ElementsAre("2@2 22"));
  std::ofstream(path, std::ios::app) << "\n";
  EXPECT_THAT(Lines(reader), ElementsAre("3@5 3"));
  EXPECT_FALSE(reader.Rest().has_value());
}

TEST(JsonlReader, NamesWhatCannotBeRead) {
  EXPECT_THAT(
      JsonlReader::Open("/no/such/file"),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/file")));
  const int folder = ::open("/", O_RDONLY);
  JsonlReader reader = JsonlReader::ForDescriptor(folder, "root");
  EXPECT_FALSE(reader.Next().ok());
  ::close(folder);
}

TEST(ReplacePythonTokens, LeavesStringsAlone) {
  std::string out;
  EXPECT_TRUE(ReplacePythonTokens(
      R"({"NaN": NaN, "b": [-Infinity, Infinity], "c": "NaN \" Infinity"})",
      &out));
  EXPECT_EQ(out, R"({"NaN": null, "b": [null, null], "c": "NaN \" Infinity"})");
  EXPECT_FALSE(ReplacePythonTokens(R"({"a": -1, "b": "x\\"})", &out));
  EXPECT_EQ(out, R"({"a": -1, "b": "x\\"})");
  EXPECT_FALSE(ReplacePythonTokens("\"\\", &out));
  EXPECT_FALSE(ReplacePythonTokens("", &out));
}

}  // namespace
}  // namespace firstframe
