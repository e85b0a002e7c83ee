#include "lib/activation/number.h"

#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/activation/python_json.h"

namespace firstframe {
namespace {

// Returns whether all of `text` is a number; fills `*number`.
bool Parse(const std::string& text, ParsedNumber* number) {
  return ParseNumber(text.data(), text.data() + text.size(), number) ==
         text.data() + text.size();
}

TEST(ParseNumber, ReadsEveryWidenedFloatExactly) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000000; ++i) {
    const uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, 4);
    if (!std::isfinite(value)) continue;
    std::string text;
    AppendPythonFloat(value, &text);
    ParsedNumber number;
    ASSERT_TRUE(Parse(text, &number)) << text;
    ASSERT_TRUE(number.is_float) << text;
    ASSERT_EQ(std::memcmp(&number.value, &value, 4), 0) << text;
  }
}

TEST(ParseNumber, TellsDoublesThatAreNoFloats) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(0.1, 1000);
  for (int i = 0; i < 100000; ++i) {
    const double value = uniform(random);
    std::string text;
    AppendPythonFloat(value, &text);
    ParsedNumber number;
    ASSERT_TRUE(Parse(text, &number));
    EXPECT_FALSE(number.is_float) << text;
    EXPECT_FLOAT_EQ(number.value, static_cast<float>(value));
    EXPECT_EQ(ReadDouble(text), value);
  }
}

TEST(ParseNumber, TakesWhatOtherToolsWrite) {
  ParsedNumber number;
  for (const char* text : {"1", "0", "-0", "10", "1e5", "1E+05", "0.5e-3",
                           "123456789012345678901234567890", "1e400",
                           "0.000000000000000000000000000001"}) {
    EXPECT_TRUE(Parse(text, &number)) << text;
    EXPECT_EQ(number.value, std::strtof(text, nullptr)) << text;
  }
  EXPECT_EQ(ReadDouble("1e-400"), 0);
  EXPECT_EQ(ReadDouble("-1e400"), -INFINITY);
}

TEST(ParseNumber, RefusesWhatJsonDoes) {
  ParsedNumber number;
  for (const char* text : {"", "-", "01", "-01", "1.", ".5", "+1", "1e", "1e+",
                           "--1", "x", "1.e5", "0x10"}) {
    EXPECT_FALSE(Parse(text, &number)) << text;
  }
}

}  // namespace
}  // namespace firstframe
