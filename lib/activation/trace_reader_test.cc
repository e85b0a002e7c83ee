#include "lib/activation/trace_reader.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/python_json.h"
#include "lib/activation/trace_input.h"
#include "lib/activation/trace_pair.h"
#include "lib/activation/trace_record.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"

namespace firstframe {
namespace {

using ::testing::ElementsAre;

constexpr absl::string_view kGolden =
    "testdata/activation_trace/trace_cpu_fp32.jsonl.gz";

std::string Golden() {
  return std::string(TraceInput::Open(std::string(kGolden))->text());
}

class Read {
 public:
  explicit Read(std::string text) : text_(std::move(text)) {
    table = ReadTrace(text_, "t", &names);
  }

  std::string Module(int i) { return names.key(table.rows[i].key).module; }
  std::string Tensor(int i) { return names.key(table.rows[i].key).tensor; }
  std::vector<std::string> Modules() {
    std::vector<std::string> modules;
    for (size_t i = 0; i < table.rows.size(); ++i) modules.push_back(Module(i));
    return modules;
  }

 private:
  std::string text_;

 public:
  TraceNames names;
  TraceTable table;
};

std::string Line(absl::string_view module, double abs_mean) {
  std::string line = absl::StrCat("{\"module\": \"", module,
                                  "\", \"tensor\": \"out\", \"step\": null, "
                                  "\"abs_mean\": ");
  AppendPythonFloat(abs_mean, &line);
  return line + "}\n";
}

TEST(TraceReader, ReadsEveryNumberOfTheGoldenExactly) {
  const std::string text = Golden();
  Read read(text);
  ASSERT_EQ(read.table.rows.size(), 461u);
  EXPECT_TRUE(read.table.damage.IsClean());
  for (const TraceRow& row : read.table.rows) {
    const TraceRecord record = ReadRecord(text.substr(row.offset));
    EXPECT_EQ(row.flags, 0);
    for (int i = 0; i < kNumTraceValues; ++i) {
      ASSERT_EQ(row.values[i], record.values[i].number);
      // and what the writer makes of it is what FastVideo wrote
      std::string again;
      AppendPythonFloat(row.values[i], &again);
      EXPECT_TRUE(absl::StrContains(text.substr(row.offset, 400), again))
          << again;
    }
  }
  EXPECT_EQ(read.Module(0), "post_quant_conv");
  EXPECT_EQ(read.names.shape(read.table.rows[0].shape),
            (Shape{1, 16, 3, 4, 6}));
  EXPECT_EQ(read.names.dtype(read.table.rows[0].dtype), "float32");
}

TEST(TraceReader, SurvivesTruncationAtEveryByte) {
  const std::string text = Golden().substr(0, 3000);
  size_t rows = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    Read read(text.substr(0, size));
    EXPECT_GE(read.table.rows.size(), rows);
    rows = read.table.rows.size();
    const bool at_record_end =
        size == 0 || text[size - 1] == '\n' || text[size - 1] == '}';
    EXPECT_EQ(read.table.damage.IsClean(), at_record_end) << size;
    EXPECT_EQ(read.table.damage.torn_at_end, !at_record_end) << size;
  }
}

TEST(TraceReader, TakesAnyKeyOrderAndSpacing) {
  Read read(
      "\xEF\xBB\xBF{\"sum\":1e-5,\"step\":\"3\",\"tensor\":\"x\",\"module\":"
      "\"a\"}\r\n\r\n"
      "  { \"module\" : \"b\" , \"tensor\" : \"out\" , \"step\" : 3.0 , "
      "\"shape\": \"torch.Size([2, 3])\", \"dtype\": \"bfloat16\"}\r\n"
      "{\"module\":\"c\",\"module\":\"d\",\"tensor\":\"out\",\"step\":null}");
  EXPECT_THAT(read.Modules(), ElementsAre("a", "b", "d"));
  EXPECT_EQ(read.table.rows[0].step, 3);
  EXPECT_EQ(read.table.rows[1].step, 3);
  EXPECT_EQ(read.table.rows[2].step, kNoStep);
  EXPECT_FLOAT_EQ(read.table.rows[0].values[kSum], 1e-5f);
  EXPECT_EQ(read.names.shape(read.table.rows[1].shape), (Shape{2, 3}));
  EXPECT_EQ(read.names.dtype(read.table.rows[1].dtype), "bfloat16");
  EXPECT_EQ(read.table.damage.duplicate_keys, 1);
  EXPECT_TRUE(read.table.damage.IsClean());
}

TEST(TraceReader, TellsOddValuesApart) {
  const auto kind = [](absl::string_view value) {
    Read read(
        absl::StrCat("{\"module\": \"a\", \"tensor\": \"out\", \"step\": "
                     "null, \"abs_mean\": ",
                     value, ", \"sum\": 2.0}\n"));
    return read.table.rows.empty() ? ValueKind::kMissing
                                   : read.table.rows[0].Kind(kAbsMean);
  };
  EXPECT_EQ(kind("1"), ValueKind::kNumber);
  EXPECT_EQ(kind("NaN"), ValueKind::kNan);
  EXPECT_EQ(kind("nan"), ValueKind::kNan);
  EXPECT_EQ(kind("Infinity"), ValueKind::kPositiveInfinity);
  EXPECT_EQ(kind("-inf"), ValueKind::kNegativeInfinity);
  EXPECT_EQ(kind("1.7976931348623157e+308"), ValueKind::kPositiveInfinity);
  EXPECT_EQ(kind("null"), ValueKind::kNull);
  EXPECT_EQ(kind("\"<error: RuntimeError('x')>\""), ValueKind::kError);
  EXPECT_EQ(kind("NaN123"), ValueKind::kMissing);  // a torn record
}

TEST(TraceReader, ResynchronisesBehindTornAndGluedRecords) {
  Read torn("{\"module\":\"a\",\"st" + Line("b", 1) + Line("c", 2));
  EXPECT_THAT(torn.Modules(), ElementsAre("b", "c"));
  EXPECT_EQ(torn.table.damage.torn, 1);
  EXPECT_EQ(torn.table.damage.glued, 1);
  EXPECT_EQ(torn.table.damage.first_torn_line, 1);

  Read glued(absl::StrReplaceAll(Line("a", 1), {{"\n", ""}}) + Line("b", 1) +
             "\n\n");
  EXPECT_THAT(glued.Modules(), ElementsAre("a", "b"));
  EXPECT_EQ(glued.table.damage.glued, 1);
  EXPECT_TRUE(glued.table.damage.IsClean());

  // Two processes: the second's line landed inside the first's.
  Read interleaved(Line("a", 1) + "{\"module\": \"x\", \"ten" + Line("b", 1) +
                   "sor\": \"out\"}\n" + Line("c", 1));
  EXPECT_THAT(interleaved.Modules(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(interleaved.table.damage.torn, 2);
}

TEST(TraceReader, TakesLinesOfAnyLengthAndErrorsWithQuotes) {
  std::string error;
  AppendPythonString("<error: RuntimeError(\"no kernel\\n" +
                         std::string(43000, 'x') + " <a> 'b'\")>",
                     &error);
  const std::string text = Line("a", 1) +
                           "{\"module\": \"m\", \"tensor\": \"out\", \"step\": "
                           "null, \"abs_mean\": " +
                           error + "}\n" + Line("b", 2);
  Read read(text);
  EXPECT_THAT(read.Modules(), ElementsAre("a", "m", "b"));
  EXPECT_EQ(read.table.rows[1].Kind(kAbsMean), ValueKind::kError);
  EXPECT_GT(ReadRecord(text.substr(read.table.rows[1].offset))
                .values[kAbsMean]
                .error.size(),
            43000u);
}

TEST(TraceReader, KeepsStrangeNames) {
  Read read(
      "{\"module\": \"a\\\"b\\n\", \"tensor\": "
      "\"out.\\u043a\\ud800\\ud83c\\udfac\", \"step\": null}\n"
      "{\"module\": \"a\", \"tensor\": \"out.x[0]\", \"step\": null}\n"
      "{\"module\": \"a\", \"tensor\": \"out.x[0]\", \"step\": null}\n");
  EXPECT_EQ(read.Module(0), "a\"b\n");
  EXPECT_EQ(read.Tensor(0), "out.\xD0\xBA\xED\xA0\x80\xF0\x9F\x8E\xAC");
  EXPECT_EQ(read.table.rows[1].key, read.table.rows[2].key);
  EXPECT_TRUE(read.table.damage.IsClean());
}

TEST(TraceReader, SeparatesRunsAndRanks) {
  Read read(
      "{\"trace_header\": {\"version\": 1}}\n"
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": 0, \"rank\": 0}\n"
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": 0, \"rank\": 1}\n"
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": 1, \"rank\": 0}\n"
      "{\"module\": \"a\", \"tensor\": \"out\", \"step\": 0, \"rank\": 0}\n"
      "{\"module\": \"b\", \"tensor\": \"out\", \"step\": 0, \"rank\": 0}\n"
      "[1, 2]\n{\"other\": {\"module\": 1}}\n");
  ASSERT_EQ(read.table.rows.size(), 5u);
  const auto segment = [&](int i) {
    return read.table.segments[read.table.rows[i].segment];
  };
  EXPECT_EQ(segment(0).rank, 0);
  EXPECT_EQ(segment(1).rank, 1);
  EXPECT_EQ(segment(2), segment(0));
  EXPECT_GT(segment(3).generation, segment(0).generation);
  EXPECT_EQ(segment(4), segment(3));
  EXPECT_EQ(read.table.headers.size(), 1u);
  EXPECT_EQ(read.table.damage.foreign, 2);
}

TEST(TraceReader, FollowsALayoutThatChangesMidway) {
  std::string text;
  for (int i = 0; i < 50; ++i) {
    text += Line(absl::StrCat("m.", i % 7), i);
    if (i % 5 == 0) {
      absl::StrAppend(&text, "{\"tensor\": \"o\", \"module\": \"n", i,
                      "\", \"max\": ", i, ", \"foo\": {\"max\": [1]}}\n");
    }
  }
  Read read(text);
  EXPECT_EQ(read.table.rows.size(), 60u);
  EXPECT_TRUE(read.table.damage.IsClean());
  EXPECT_EQ(read.table.rows[0].values[kAbsMean], 0);
  EXPECT_EQ(read.table.rows[1].flags, TraceRow::kHasExtras);
}

TEST(ReadTracePair, SkipsEqualLinesAndKeepsTheirKeys) {
  const std::string a = Golden();
  std::string b = a;
  // one digit, in the line 300 records in
  size_t at = 0;
  for (int i = 0; i < 300; ++i) at = b.find('\n', at) + 1;
  at = b.find("abs_mean\": 0.", at) + 13;
  b[at] = b[at] == '9' ? '8' : '9';
  TraceNames names;
  const auto [left, right, runs, has_unread] =
      ReadTracePair(a, "a", b, "b", EqualLines::kRows, &names);
  ASSERT_EQ(left.rows.size(), 461u);
  ASSERT_EQ(right.rows.size(), 461u);
  int unread = 0;
  for (int i = 0; i < 461; ++i) {
    EXPECT_EQ(left.rows[i].key, right.rows[i].key);
    EXPECT_EQ(left.rows[i].offset, right.rows[i].offset);
    unread += (left.rows[i].flags & TraceRow::kUnread) != 0;
    EXPECT_EQ(left.rows[i].flags & TraceRow::kUnread,
              right.rows[i].flags & TraceRow::kUnread);
  }
  EXPECT_GT(unread, 300);  // the first of each name is read
  EXPECT_EQ(left.rows[300].flags & TraceRow::kUnread, 0);
  EXPECT_NE(left.rows[300].values[kAbsMean], right.rows[300].values[kAbsMean]);
}

TEST(ReadTracePair, ReadsEqualLinesThatHoldNan) {
  const std::string text = Line("a", 1) + Line("b", std::nan("")) +
                           Line("c", INFINITY) + Line("d", 1);
  TraceNames names;
  const auto [left, right, runs, has_unread] =
      ReadTracePair(text, "a", text, "b", EqualLines::kRows, &names);
  EXPECT_EQ(left.rows[1].Kind(kAbsMean), ValueKind::kNan);
  EXPECT_EQ(right.rows[2].Kind(kAbsMean), ValueKind::kPositiveInfinity);
}

TEST(ReadTracePair, SeesARunThatEqualLinesBegin) {
  std::string text = Line("a", 1) + Line("b", 1) + Line("c", 1);
  const std::string later = absl::StrReplaceAll(
      text, {{"\"abs_mean\"", "\"run\": \"2\", \"abs_mean\""}});
  text += later + Line("d", 1);
  TraceNames names;
  const auto [left, right, runs, has_unread] =
      ReadTracePair(text, "a", text, "b", EqualLines::kRows, &names);
  ASSERT_EQ(left.rows.size(), 7u);
  EXPECT_EQ(left.segments.size(), 2u);
  EXPECT_EQ(left.segments[left.rows[4].segment].run, "2");
  EXPECT_EQ(right.segments[right.rows[5].segment].run, "2");
}

TEST(ReadTracePair, TellsAStepFromOneThatBeginsAlike) {
  std::string text;
  for (const char* step : {"1", "1", "12", "2", "21", "1"}) {
    text += absl::StrReplaceAll(Line("a", 1),
                                {{"null", step}, {"1.0", "1.12345678"}});
  }
  TraceNames names;
  const auto [left, right, runs, has_unread] =
      ReadTracePair(text, "a", text, "b", EqualLines::kRows, &names);
  ASSERT_EQ(left.rows.size(), 6u);
  EXPECT_NE(left.rows[2].flags & TraceRow::kUnread, 0);
  EXPECT_EQ(left.rows[1].step, 1);
  EXPECT_EQ(left.rows[2].step, 12);
  EXPECT_EQ(right.rows[3].step, 2);
  EXPECT_EQ(right.rows[4].step, 21);
}

TEST(ReadTracePair, SurvivesRandomDamage) {
  const std::string golden = Golden().substr(0, 20000);
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::string a = golden, b = golden;
    for (int i = 0; i < 4; ++i) {
      std::string& text = i % 2 == 0 ? a : b;
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 400);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), 100));
      }
    }
    TraceNames names;
    const auto [left, right, runs, has_unread] =
        ReadTracePair(a, "a", b, "b", EqualLines::kRows, &names);
    EXPECT_GT(left.rows.size(), 40u);
    EXPECT_GT(right.rows.size(), 40u);
  }
}

TEST(TraceInput, ReadsZstdAndRefusesDamage) {
  const testing::TempDir dir;
  EXPECT_THAT(
      TraceInput::Open(dir.Write("x.gz", std::string("\x1F\x8B\x08", 3))),
      testing::StatusIs(absl::StatusCode::kDataLoss,
                        ::testing::HasSubstr("gzip data ends early")));
  EXPECT_THAT(TraceInput::Open(dir.Write("x.zst", "\x28\xB5\x2F\xFD garbage")),
              testing::StatusIs(absl::StatusCode::kDataLoss,
                                ::testing::HasSubstr("zstd data ends early")));
  EXPECT_THAT(TraceInput::Open(dir.File("absent")),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                ::testing::HasSubstr("cannot open")));
  ASSERT_OK_AND_ASSIGN(const TraceInput empty,
                       TraceInput::Open(dir.Write("empty", "")));
  EXPECT_EQ(std::string(empty.text()), "");
}

// nst/JSONTestSuite: y_ must be read, n_ refused but for Python's tokens.
TEST(JsonScan, FollowsTheJsonTestSuite) {
  const char* const corpus = std::getenv("FIRSTFRAME_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FIRSTFRAME_CORPUS is not set";
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::string(corpus) + "/jsonl/JSONTestSuite")) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".json") continue;
    const std::string text = testing::ReadFile(entry.path());
    const char* const end = text.data() + text.size();
    const char* const behind = json_scan::SkipValue(text.data(), end);
    const bool is_valid =
        behind != nullptr && json_scan::SkipSpace(behind, end) == end;
    ++seen;
    if (absl::StartsWith(name, "y_")) {
      EXPECT_TRUE(is_valid) << name;
    } else if (absl::StartsWith(name, "n_") &&
               !absl::StrContains(name, "nan") &&
               !absl::StrContains(name, "NaN") &&
               !absl::StrContains(name, "nfinity")) {
      EXPECT_FALSE(is_valid) << name;
    }
  }
  EXPECT_GT(seen, 100);
}

}  // namespace
}  // namespace firstframe
