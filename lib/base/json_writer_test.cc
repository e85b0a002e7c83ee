#include "lib/base/json_writer.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "simdjson.h"

namespace firstframe {
namespace {

std::string Literal(absl::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

TEST(JsonWriter, EveryByteYieldsValidJson) {
  simdjson::dom::parser parser;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = {'a', static_cast<char>(byte), 'b'};
    std::string_view parsed;
    const std::string literal = Literal(text);
    ASSERT_EQ(parser.parse(literal).get(parsed), simdjson::SUCCESS) << byte;
    if (byte < 0x80) {
      EXPECT_EQ(parsed, text) << byte;
    } else {
      EXPECT_EQ(parsed,
                "a\xEF\xBF\xBD"
                "b")
          << byte;
    }
  }
}

TEST(JsonWriter, KeepsWellFormedUtf8) {
  EXPECT_EQ(Literal("d\xC3\xA9"
                    "code \xF0\x9F\x8E\xAC"),
            "\"d\xC3\xA9"
            "code \xF0\x9F\x8E\xAC\"");
}

TEST(JsonWriter, NumbersReadBackExactly) {
  std::string out;
  JsonWriter json(&out);
  json.BeginArray();
  json.Int(std::numeric_limits<int64_t>::min());
  json.Uint(std::numeric_limits<uint64_t>::max());
  json.Double(0.1).Double(-0.0).Double(5e-324).Double(1e300);
  json.Double(std::nan("")).Double(INFINITY).Double(-INFINITY);
  json.OptionalDouble(std::nullopt).OptionalDouble(2.5);
  json.EndArray();
  EXPECT_EQ(out,
            "[-9223372036854775808,18446744073709551615,0.1,-0,5e-324,1e+300,"
            "null,null,null,null,2.5]");
}

TEST(JsonWriter, StringOrNull) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Key("a").StringOrNull("");
  json.Key("b").StringOrNull("x");
  json.EndObject();
  EXPECT_EQ(out, R"({"a":null,"b":"x"})");
}

TEST(JsonWriter, NestsObjectsAndArrays) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  json.Key("a").BeginArray().EndArray();
  json.Key("b").BeginObject();
  json.Key("c").Bool(true);
  json.Key("d").Null();
  json.EndObject();
  json.Key("e").Raw("{\"f\":1}");
  json.EndObject();
  EXPECT_EQ(out, R"({"a":[],"b":{"c":true,"d":null},"e":{"f":1}})");
}

TEST(JsonWriter, PrettyKeepsScalarArraysOnOneLine) {
  std::string out;
  JsonWriter json(&out, JsonWriter::Style::kPretty);
  json.BeginObject();
  json.Key("shape").BeginArray().Int(1).Int(2).EndArray();
  json.Key("rows").BeginArray();
  json.BeginObject().Key("x").Int(1).EndObject();
  json.BeginObject().EndObject();
  json.EndArray();
  json.EndObject();
  EXPECT_EQ(out, R"({
  "shape": [1, 2],
  "rows": [
    {
      "x": 1
    },
    {}
  ]
})");
}

TEST(JsonWriterDeathTest, MisuseStopsTheProcess) {
  std::string out;
  JsonWriter json(&out);
  json.BeginObject();
  EXPECT_DEATH(json.Int(1), "has_key_");
  EXPECT_DEATH(json.EndArray(), "is_array");
}

}  // namespace
}  // namespace firstframe
