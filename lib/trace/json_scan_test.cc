#include "lib/trace/json_scan.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

TEST(JsonScan, Microseconds) {
  const std::pair<const char*, int64_t> kCases[] = {
      {"0", 0},
      {"1", 1000},
      {"1.5", 1500},
      {"5106602237299.781", 5106602237299781},
      {"0.0019", 1},
      {"-0.5", -500},
      {"-3", -3000},
      {"1e3", 1000000},
      {"1.7e15", 1700000000000000000},
      {"1790857026000000", 1790857026000000000},
      {"12.", 12000},
  };
  for (const auto& [text, nanoseconds] : kCases) {
    int64_t value = -1;
    EXPECT_TRUE(ParseMicroseconds(text, &value)) << text;
    EXPECT_EQ(value, nanoseconds) << text;
  }
  for (const char* text : {"", "-", "x", "null", "NaN", "Infinity", "1e30",
                           "1.2.3", "1 ", "99999999999999999999"}) {
    int64_t value = 0;
    EXPECT_FALSE(ParseMicroseconds(text, &value)) << text;
  }
  EXPECT_EQ(FormatMicroseconds(5106602237299781), "5106602237299.781");
  EXPECT_EQ(FormatMicroseconds(-500), "-0.500");
  EXPECT_EQ(FormatMicroseconds(INT64_MIN), "-9223372036854775.808");
}

TEST(JsonScan, DecodesEscapes) {
  EXPECT_EQ(DecodeJsonString(R"(a\n\t\"\\\/b)"), "a\n\t\"\\/b");
  EXPECT_EQ(DecodeJsonString(R"(\u4e2d\ud83c\udfac)"),
            "\xe4\xb8\xad\xf0\x9f\x8e\xac");
  EXPECT_EQ(DecodeJsonString(R"(\ud83c)"), "\xef\xbf\xbd");
  EXPECT_EQ(DecodeJsonString(R"(C:\Users\me\new)"), "C:\\Users\\me\new");
  EXPECT_EQ(DecodeJsonString("\\"), "\\");
  EXPECT_EQ(DecodeJsonString("\\u12"), "\\u12");
}

TEST(JsonScan, StringsEndAtASeparatedQuote) {
  const std::string text = R"("a "quoted" word", 1)";
  JsonOddities oddities;
  const char* const end =
      FindStringEnd(text.data() + 1, text.data() + text.size(), &oddities);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(std::string(text.data() + 1, end), "a \"quoted\" word");
  EXPECT_TRUE(oddities.inner_quote);
}

TEST(JsonScan, ValuesAtEveryLengthAndPrefix) {
  // Long enough to cross the 16-byte steps at every alignment.
  for (int pad = 0; pad < 40; ++pad) {
    const std::string text = "{\"" + std::string(pad, 'x') +
                             "\": [1, {\"a\": \"}]\\\"\"}, [[]]], \"b\": 2} ";
    JsonOddities oddities;
    const char* const begin = text.data();
    EXPECT_EQ(SkipJsonValue(begin, begin + text.size(), &oddities),
              begin + text.size() - 1);
    for (size_t n = 0; n + 1 < text.size(); ++n) {
      EXPECT_EQ(SkipJsonValue(begin, begin + n, &oddities), nullptr) << n;
    }
  }
}

TEST(JsonScan, BareWords) {
  for (const char* text : {"NaN ", "-Infinity,", "N/A}", "nan]"}) {
    JsonOddities oddities;
    const std::string value = text;
    EXPECT_EQ(
        SkipJsonValue(value.data(), value.data() + value.size(), &oddities),
        value.data() + value.size() - 1);
    EXPECT_TRUE(oddities.bare_word) << text;
  }
  for (const char* text : {"true ", "null,", "-1.5e3}", "7]"}) {
    JsonOddities oddities;
    const std::string value = text;
    SkipJsonValue(value.data(), value.data() + value.size(), &oddities);
    EXPECT_FALSE(oddities.bare_word) << text;
  }
}

TEST(JsonScan, VisitsObjects) {
  const std::string text = R"({"a": 1, "b": "x,y", "c": [], nope": {"d": 2},})";
  std::vector<std::string> seen;
  JsonOddities oddities;
  EXPECT_TRUE(VisitJsonObject(
      text, &oddities, [&](absl::string_view k, absl::string_view v) {
        seen.push_back(std::string(k) + "=" + std::string(v));
        return true;
      }));
  EXPECT_EQ(seen, (std::vector<std::string>{"a=1", "b=\"x,y\"", "c=[]",
                                            "nope={\"d\": 2}"}));
  EXPECT_EQ(FindJsonValue(text, "b"), "\"x,y\"");
  EXPECT_EQ(FindJsonValue(text, "z"), "");
  EXPECT_EQ(FindJsonValue("[]", "z"), "");
  EXPECT_EQ(FindJsonValue("", "z"), "");
}

}  // namespace
}  // namespace firstframe
