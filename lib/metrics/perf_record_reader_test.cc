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

// Twice every space outside of strings: the same JSON, but none that the parser
// guesses right.
std::string Spread(const std::string& line) {
  std::string spread;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\') spread += line[i++];
    if (i < line.size()) spread += line[i];
    if (line[i] == '"') in_string = !in_string;
    if (line[i] == ' ' && !in_string) spread += ' ';
  }
  return spread;
}

// Without the spaces outside of strings, as this project writes.
std::string Compact(const std::string& line) {
  std::string compact;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string && line[i] == '\\') compact += line[i++];
    if (line[i] != ' ' || in_string) compact += line[i];
    if (line[i] == '"') in_string = !in_string;
  }
  return compact;
}

std::string Outcome(PerfRecordParser& parser, const std::string& line) {
  const auto kind = Parse(parser, line);
  if (!kind.ok()) return "refused";
  if (*kind == PerfRecordKind::kOther) return "other";
  return *kind == PerfRecordKind::kRequest ? ToJson(parser.request())
                                           : ToJson(parser.train_window());
}

// The quick way and the general one, on records from which a byte was lost.
TEST(PerfRecordParser, ReadsAlikeHoweverItIsWritten) {
  PerfRecordParser parser;
  int refused = 0;
  int accepted = 0;
  for (const char* name : {"infer.jsonl", "train_lora_ckpt.jsonl"}) {
    const std::string line = GoldenLines(name)[1];
    for (size_t lost = 0; lost <= line.size(); ++lost) {
      std::string damaged = line;
      damaged.erase(lost, 1);
      const std::string outcome = Outcome(parser, damaged);
      ASSERT_EQ(outcome, Outcome(parser, Spread(damaged))) << damaged;
      ASSERT_EQ(outcome, Outcome(parser, Compact(damaged))) << damaged;
      (outcome == "refused" ? refused : accepted) += 1;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(accepted, 100);
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
  EXPECT_EQ(parser.request().e2e_s, 0);  // too small for a double: absent
  ASSERT_THAT(Parse(parser, R"({"kind":"request","e2e_s":7e906})"), IsOk());
  EXPECT_EQ(parser.request().e2e_s, 0);
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

// A number between bytes that a parser may read but not use.
class NumberText {
 public:
  explicit NumberText(const std::string& number, absl::string_view behind = ",")
      : number_size_(number.size()) {
    text_ = std::string(kNumberLookBack, '7') + number + std::string(behind);
    text_.append(kNumberPadding, '\0');
  }
  // From the start of what is readable, and as if that were the number's own.
  void Expect(const std::optional<double>& expected) const {
    const char* const begin = text_.data() + kNumberLookBack;
    for (const char* readable : {text_.data(), begin}) {
      double actual = -2;
      const char* const end = ParseJsonNumber(readable, begin, actual);
      if (!expected) {
        EXPECT_EQ(end, nullptr) << begin;
        continue;
      }
      ASSERT_EQ(end, begin + number_size_) << begin;
      ASSERT_EQ(std::bit_cast<uint64_t>(actual),
                std::bit_cast<uint64_t>(*expected))
          << begin;
    }
  }

 private:
  size_t number_size_;
  std::string text_;
};

void ExpectAsFromChars(const std::string& number) {
  double expected = -1;
  const auto [end, code] =
      std::from_chars(number.data(), number.data() + number.size(), expected);
  ASSERT_EQ(end, number.data() + number.size());
  if (code == std::errc()) {
    NumberText(number).Expect(expected);
  } else {
    NumberText(number).Expect(std::nullopt);
  }
}

std::string Scientific(double value, int digits) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value,
                                 std::chars_format::scientific, digits);
  return std::string(text, end.ptr);
}
std::string Shortest(double value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
std::string Fixed(double value, int digits) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof text, value,
                                 std::chars_format::fixed, digits);
  return std::string(text, end.ptr);
}

// A correctly rounded parser has one answer for each text.
TEST(ParseJsonNumber, EqualsFromCharsOnRandomDoublesAndHalfways) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100000; ++i) {
    const double any = std::bit_cast<double>(random());
    if (std::isfinite(any)) ExpectAsFromChars(Shortest(any));
    const double usual = std::ldexp(static_cast<double>(random() >> 11),
                                    static_cast<int>(random() % 80) - 80);
    ExpectAsFromChars(Shortest(usual));
    ExpectAsFromChars(Scientific(-usual, 16));
    ExpectAsFromChars(Scientific(usual, 18));
    ExpectAsFromChars(Fixed(usual, static_cast<int>(random() % 25)));
    // Integers just about halfway between two doubles.
    const uint64_t odd = (random() >> 10) | (uint64_t{1} << 53) | 1;
    ExpectAsFromChars(std::to_string(odd));
    // Halfways with a fraction: an odd multiple of a power of two in decimal.
    const double half = std::ldexp(static_cast<double>((random() >> 11) | 1),
                                   -static_cast<int>(i % 60));
    const double next = std::nextafter(half, HUGE_VAL);
    ExpectAsFromChars(Fixed(half + (next - half) / 2, 22));
  }
  for (const double edge : {0.0, -0.0, 1.0, 9007199254740993.0, 5e-324,
                            1.7976931348623157e308, 0.1, 1e23, 8.5e-27}) {
    ExpectAsFromChars(Shortest(edge));
  }
}

TEST(ParseJsonNumber, TakesEveryCountOfDigits) {
  const std::string digits = "12345678901234567890123456789012345";
  for (size_t whole = 1; whole <= digits.size(); ++whole) {
    ExpectAsFromChars(digits.substr(0, whole));
    for (size_t count = 1; count <= digits.size(); ++count) {
      const std::string fraction = digits.substr(0, count);
      ExpectAsFromChars(digits.substr(0, whole) + "." + fraction);
      ExpectAsFromChars("-0." + std::string(count, '0') +
                        digits.substr(0, whole));
      ExpectAsFromChars(digits.substr(0, whole) + "." + fraction + "e-" +
                        std::to_string(count));
    }
  }
}

TEST(ParseJsonNumber, RefusesWhatJsonHasNoNumberFor) {
  for (const char* text : {"", "-", "+1", "01", "-01", "1.", "1.e3", ".5", "1e",
                           "1e+", "1e-", "NaN", "x", "1e999", "-1e999"}) {
    NumberText(text).Expect(std::nullopt);
  }
}

TEST(ParseJsonInteger, TakesPlainOnesAlone) {
  const std::string lead(kNumberLookBack, '9');
  const std::string digits = "1234567890123456";
  for (size_t count = 1; count <= digits.size(); ++count) {
    const std::string number = digits.substr(0, count);
    const std::string text = lead + number + "," + std::string(40, '\0');
    int64_t value = -1;
    const char* const begin = text.data() + lead.size();
    EXPECT_EQ(ParseJsonInteger(text.data(), begin, value), begin + count);
    EXPECT_EQ(std::to_string(value), number);
  }
  for (const char* other :
       {"1.0", "1e3", "01", "-1", "x", "12345678901234567"}) {
    const std::string text = lead + other + "," + std::string(40, '\0');
    int64_t value = -1;
    EXPECT_EQ(ParseJsonInteger(text.data(), text.data() + lead.size(), value),
              nullptr)
        << other;
  }
}

}  // namespace
}  // namespace firstframe
