#include "lib/metrics/perf_record_reader.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/base/jsonl_reader.h"
#include "lib/metrics/decimal.h"
#include "lib/testing/status_matchers.h"
#include "lib/testing/temp_dir.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using ::firstframe::testing::IsOk;
using ::firstframe::testing::IsOkAndHolds;
using ::firstframe::testing::ReadFile;
using ::firstframe::testing::StatusIs;
using ::testing::HasSubstr;

// Parses `line` as JsonlReader would hand it over.
absl::StatusOr<PerfRecordKind> Parse(PerfRecordParser& parser,
                                     const std::string& line) {
  const std::string padded = line + '\n' + std::string(kJsonlPadding, '\0');
  return parser.Parse(absl::string_view(padded.data(), line.size()));
}

std::vector<std::string> GoldenLines(const std::string& name) {
  std::vector<std::string> lines;
  std::istringstream stream(ReadFile("testdata/perf/" + name));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What it reads and ToJson writes is, value for value, what was there.
void ExpectSameJson(simdjson::dom::element actual,
                    simdjson::dom::element expected) {
  if (expected.is_object()) {
    auto it = actual.get_object().begin();
    for (const auto& [key, value] : expected.get_object()) {
      ASSERT_NE(it, actual.get_object().end()) << key;
      EXPECT_EQ(it.key(), key) << "keys in the original's order";
      ExpectSameJson(it.value(), value);
      ++it;
    }
    EXPECT_EQ(it, actual.get_object().end());
  } else if (expected.is_number()) {
    EXPECT_EQ(double{actual}, double{expected});
  } else {
    EXPECT_EQ(simdjson::minify(actual), simdjson::minify(expected));
  }
}

TEST(PerfRecordParser, ReadsAndWritesTheGoldenRecords) {
  int compared = 0;
  PerfRecordParser parser;
  for (const char* name :
       {"infer.jsonl", "train_full.jsonl", "train_lora_ckpt.jsonl"}) {
    for (const std::string& line : GoldenLines(name)) {
      SCOPED_TRACE(line);
      ASSERT_OK_AND_ASSIGN(const PerfRecordKind kind, Parse(parser, line));
      simdjson::dom::parser left;
      simdjson::dom::parser right;
      const std::string written = kind == PerfRecordKind::kRequest
                                      ? ToJson(parser.request())
                                      : ToJson(parser.train_window());
      ExpectSameJson(left.parse(written), right.parse(line));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 14);
}

TEST(PerfRecordParser, ReproducesTheGoldenLogLines) {
  PerfRecordParser parser;
  int compared = 0;
  for (const std::string name : {"infer", "train_full", "train_lora_ckpt"}) {
    std::vector<std::string> expected;
    for (const std::string& line : GoldenLines(name + ".log")) {
      const bool from_record =
          line.find(" req#") != std::string::npos || line.find(" step ") == 13;
      if (from_record) expected.push_back(line);
    }
    const std::vector<std::string> records = GoldenLines(name + ".jsonl");
    ASSERT_EQ(records.size(), expected.size());
    for (size_t i = 0; i < records.size(); ++i) {
      ASSERT_OK_AND_ASSIGN(const PerfRecordKind kind,
                           Parse(parser, records[i]));
      EXPECT_EQ(kind == PerfRecordKind::kRequest
                    ? FormatRequest("[Perf][rank0]", parser.request())
                    : FormatTrainWindow("[Perf][rank0]", parser.train_window()),
                expected[i]);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 14);
}

TEST(PerfRecordParser, RefusesEveryTruncation) {
  PerfRecordParser parser;
  for (const char* name : {"infer.jsonl", "train_full.jsonl"}) {
    const std::string line = GoldenLines(name)[0];
    for (size_t size = 0; size < line.size(); ++size) {
      EXPECT_THAT(Parse(parser, line.substr(0, size)),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")))
          << line.substr(0, size);
    }
    EXPECT_THAT(Parse(parser, line), IsOk());
  }
}

TEST(PerfRecordParser, TakesAnyOrderUnknownKeysAndPythonTokens) {
  PerfRecordParser parser;
  EXPECT_THAT(
      Parse(parser,
            R"( {"e2e_s" : NaN, "extra": [1, {"a": "]\"}"}, -Infinity],)"
            R"( "rank": 2.0, "dit": null, "peak_alloc_bytes": 7,)"
            R"( "kind":"request", "stages":{}, "device": "a\u0041\n"})"),
      IsOkAndHolds(PerfRecordKind::kRequest));
  EXPECT_EQ(parser.request().e2e_s, 0);
  EXPECT_EQ(parser.request().rank, 2);
  EXPECT_EQ(parser.request().device, "aA\n");
  EXPECT_EQ(parser.request().peaks->alloc_bytes, 7);
  EXPECT_FALSE(parser.request().dit.has_value());
  EXPECT_THAT(Parse(parser, R"({"kind": "activation", "x": [true, false]})"),
              IsOkAndHolds(PerfRecordKind::kOther));
  EXPECT_THAT(Parse(parser, R"({"kind": 7})"),
              IsOkAndHolds(PerfRecordKind::kOther));
  EXPECT_THAT(Parse(parser, "{}"), IsOkAndHolds(PerfRecordKind::kOther));
}

TEST(PerfRecordParser, KeepsNothingOfTheLineBefore) {
  PerfRecordParser parser;
  ASSERT_THAT(Parse(parser, GoldenLines("infer.jsonl")[0]), IsOk());
  ASSERT_THAT(Parse(parser, R"({"kind":"request","e2e_s":1e-400,"req":3})"),
              IsOk());
  EXPECT_TRUE(parser.request().stages.empty());
  EXPECT_FALSE(parser.request().dit.has_value());
  EXPECT_FALSE(parser.request().peaks.has_value());
  EXPECT_EQ(parser.request().device, "");
  EXPECT_EQ(parser.request().req, 3);
}

TEST(PerfRecordParser, SaysWhatIsWrongAndWhere) {
  PerfRecordParser parser;
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "byte 0: expected an object"},
      {"null", "expected an object"},
      {R"({"kind":"request","req":"x"})", "byte 24: expected a number"},
      {R"({"kind":"request","req":01})", "expected"},
      {R"({"kind":"request","e2e_s":1.})", "expected a number"},
      {R"({"kind":"request","e2e_s":.5})", "expected a number"},
      {R"({"kind":"request","e2e_s":+1})", "expected a number"},
      {R"({"kind":"request","req":1e30})", "number out of range"},
      {R"({"kind":"request","warmup":1})", "expected true or false"},
      {R"({"kind":"request","stages":[]})", "expected an object"},
      {R"({"kind":"request"} x)", "more after the object"},
      {R"({"kind":"request",})", "expected a key"},
      {R"({"kind":"request" "a":1})", "expected ',' or '}'"},
      {R"({"kind":"request","device":"\x"})", "unknown escape"},
      {"{\"kind\":\"req\tuest\"}", "unterminated string"},
  };
  for (const auto& [line, message] : cases) {
    EXPECT_THAT(
        Parse(parser, line),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << line;
  }
  EXPECT_THAT(Parse(parser, "{\"a\":" + std::string(1000, '[')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nested too deeply")));
}

// A correctly rounded parser has one answer for each text.
TEST(ParseJsonNumber, EqualsFromCharsOnRandomDoublesAndHalfways) {
  std::mt19937_64 random(5);
  char text[64];
  const auto check = [&](double value, int digits) {
    std::to_chars_result end{};
    if (digits == 0) {
      end = std::to_chars(text, text + sizeof text, value);
    } else {
      end = std::to_chars(text, text + sizeof text, value,
                          std::chars_format::scientific, digits);
    }
    std::fill(end.ptr, text + sizeof text, '\0');
    double expected = -1;
    std::from_chars(text, end.ptr, expected);
    double actual = -2;
    ASSERT_EQ(ParseJsonNumber(text, actual), end.ptr) << text;
    ASSERT_EQ(std::bit_cast<uint64_t>(actual),
              std::bit_cast<uint64_t>(expected))
        << text;
  };
  for (int i = 0; i < 200000; ++i) {
    const double any = std::bit_cast<double>(random());
    if (std::isfinite(any)) check(any, 0);
    const double usual = std::ldexp(static_cast<double>(random() >> 11),
                                    static_cast<int>(random() % 80) - 80);
    check(usual, 0);
    check(-usual, 16);
    check(usual, 18);
    // Integers just about halfway between two doubles.
    const uint64_t odd = (random() >> 10) | (uint64_t{1} << 53) | 1;
    std::snprintf(text, sizeof text, "%llu",
                  static_cast<unsigned long long>(odd));
    double actual = -2;
    ParseJsonNumber(text, actual);
    ASSERT_EQ(actual, static_cast<double>(odd)) << text;
  }
  for (const double edge : {0.0, -0.0, 1.0, 9007199254740993.0, 5e-324,
                            1.7976931348623157e308, 0.1, 1e23, 8.5e-27}) {
    check(edge, 0);
  }
}

}  // namespace
}  // namespace firstframe
