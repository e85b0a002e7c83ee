#include "lib/safetensors/json_cursor.h"

#include "gtest/gtest.h"

namespace firstframe {
namespace {

std::optional<std::string> ReadString(absl::string_view text) {
  JsonCursor cursor(text, 0);
  const auto value = cursor.String("a string");
  if (!value || !cursor.at_end()) return std::nullopt;
  return std::string(*value);
}

TEST(JsonCursor, Strings) {
  EXPECT_EQ(ReadString(R"("")"), "");
  EXPECT_EQ(ReadString(R"("plain")"), "plain");
  EXPECT_EQ(ReadString(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(ReadString(R"("x\u00e9\ud83d\ude00y")"),
            "x\xC3\xA9\xF0\x9F\x98\x80y");
  EXPECT_EQ(ReadString(R"("\ud83d")"), std::nullopt);
  EXPECT_EQ(ReadString(R"("\ud83dx")"), std::nullopt);
  EXPECT_EQ(ReadString(R"("\ud83d\u0041")"), std::nullopt);
  EXPECT_EQ(ReadString("\"a\x01\""), std::nullopt);
  EXPECT_EQ(ReadString("\"open"), std::nullopt);
}

TEST(JsonCursor, UnescapedViewsStay) {
  JsonCursor cursor(R"("\u0061" "\u0062")", 0);
  const auto a = cursor.String("a string");
  cursor.SkipSpace();
  const auto b = cursor.String("a string");
  EXPECT_EQ(std::string(*a), "a");
  EXPECT_EQ(std::string(*b), "b");
}

std::optional<uint64_t> ReadUnsigned(absl::string_view text) {
  JsonCursor cursor(text, 0);
  return cursor.Unsigned("a number");
}

TEST(JsonCursor, UnsignedNumbers) {
  EXPECT_EQ(ReadUnsigned("0"), 0u);
  EXPECT_EQ(ReadUnsigned("18446744073709551615"), ~uint64_t{0});
  for (const char* bad : {"", "-0", "-1", "+1", "01", "1.0", "1e3", "x",
                          "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_EQ(ReadUnsigned(bad), std::nullopt) << bad;
  }
}

bool Skips(absl::string_view text) {
  JsonCursor cursor(text, 0);
  return cursor.SkipValue(0) && cursor.at_end();
}

TEST(JsonCursor, SkipsOneValue) {
  for (const char* good :
       {"null", "true", "false", "0", "-0", "-12.5e+3", "1E2", "\"s\"", "[]",
        "{}", "[1, [2], {\"a\": [null]}]", "{\"a\":1 , \"b\":{}}"}) {
    EXPECT_TRUE(Skips(good)) << good;
  }
  for (const char* bad : {"", "nul", "nulll", "01", "1.", ".5", "1e", "-",
                          "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}",
                          "{\"a\":1,}", "[1 2]", "[", "{", "NaN", "1 2"}) {
    EXPECT_FALSE(Skips(bad)) << bad;
  }
  EXPECT_TRUE(Skips(std::string(127, '[') + std::string(127, ']')));
  EXPECT_FALSE(Skips(std::string(128, '[') + std::string(128, ']')));
}

TEST(JsonCursor, TheFirstMistakeIsKeptWithItsPosition) {
  JsonCursor cursor("  x", 100);
  EXPECT_FALSE(cursor.Expect('{', "'{'"));
  EXPECT_FALSE(cursor.Fail("something else"));
  EXPECT_EQ(cursor.error().position, 102u);
  EXPECT_EQ(cursor.error().found, "'x'");
  EXPECT_EQ(cursor.error().expected, "'{'");
}

}  // namespace
}  // namespace firstframe
