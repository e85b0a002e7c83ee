#include "lib/activation/python_json.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace firstframe {
namespace {

std::string Float(double value) {
  std::string out;
  AppendPythonFloat(value, &out);
  return out;
}

std::string Text(absl::string_view text) {
  std::string out;
  AppendPythonString(text, &out);
  return out;
}

// Each pair is what CPython 3.11 prints.
TEST(PythonFloat, IsRepr) {
  EXPECT_EQ(Float(0.0), "0.0");
  EXPECT_EQ(Float(-0.0), "-0.0");
  EXPECT_EQ(Float(1.0), "1.0");
  EXPECT_EQ(Float(30000.0), "30000.0");
  EXPECT_EQ(Float(123456789.0), "123456789.0");
  EXPECT_EQ(Float(0.1), "0.1");
  EXPECT_EQ(Float(0.1f), "0.10000000149011612");
  EXPECT_EQ(Float(1e-4), "0.0001");
  EXPECT_EQ(Float(1e-5f), "9.999999747378752e-06");
  EXPECT_EQ(Float(1e15), "1000000000000000.0");
  EXPECT_EQ(Float(9007199254740993.0), "9007199254740992.0");
  EXPECT_EQ(Float(1e16), "1e+16");
  EXPECT_EQ(Float(1e16f), "1.0000000272564224e+16");
  EXPECT_EQ(Float(-1.5e-7), "-1.5e-07");
  EXPECT_EQ(Float(5e-324), "5e-324");
  EXPECT_EQ(Float(1.7976931348623157e308), "1.7976931348623157e+308");
}

TEST(PythonFloat, NonFiniteValuesAreTokens) {
  EXPECT_EQ(Float(std::nan("")), "NaN");
  EXPECT_EQ(Float(INFINITY), "Infinity");
  EXPECT_EQ(Float(-INFINITY), "-Infinity");
}

TEST(PythonString, IsJsonDumps) {
  EXPECT_EQ(Text("out"), R"("out")");
  EXPECT_EQ(Text("a\"b\\c\n\t\r\b\f/"), R"("a\"b\\c\n\t\r\b\f/")");
  EXPECT_EQ(Text(absl::string_view("\0\x1f\x7f", 3)),
            R"("\u0000\u001f\u007f")");
  EXPECT_EQ(Text("ключ"), R"("\u043a\u043b\u044e\u0447")");
  EXPECT_EQ(Text("\xF0\x9F\x8E\xAC"), R"("\ud83c\udfac")");
}

TEST(PythonString, KeepsWhatUtf8Forbids) {
  EXPECT_EQ(Text("\xED\xA0\x80"), R"("\ud800")");  // a lone surrogate
  EXPECT_EQ(Text("\xFF"), R"("\udcff")");
  EXPECT_EQ(Text("a\xC3"), R"("a\udcc3")");
}

TEST(PythonRepr, ChoosesItsQuotes) {
  std::string out;
  AppendPythonRepr("plain", &out);
  AppendPythonRepr("it's", &out);
  AppendPythonRepr("a\"b'c\n", &out);
  EXPECT_EQ(out, R"('plain'"it's"'a"b\'c\n')");
}

}  // namespace
}  // namespace firstframe
