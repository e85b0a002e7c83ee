// Writes JSON (RFC 8259) into a string, one token at a time.
//
// The output is valid whatever the data holds: NaN and infinities become null,
// bytes that are not UTF-8 become U+FFFD, control characters are escaped.
// Integers are numbers, also beyond 2^53; doubles use the shortest form that
// reads back to the same value. Keys keep the order in which they are written.
//
//   std::string text;
//   JsonWriter json(&text);
//   json.BeginObject();
//   json.Key("duration_ns").Int(12);
//   json.Key("samples").BeginArray();
//   json.Double(0.5);
//   json.EndArray();
//   json.EndObject();
//
// Misuse (a value without a key in an object, an unbalanced End) is a bug and
// stops the process. Thread-compatible.

#ifndef LIB_BASE_JSON_WRITER_H_
#define LIB_BASE_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace firstframe {

class JsonWriter {
 public:
  enum class Style {
    kCompact,  // no white space at all: one JSONL record
    kPretty,   // two spaces a level; arrays of scalars stay on one line
  };

  // Appends to `*out`, which must outlive the writer.
  explicit JsonWriter(std::string* out, Style style = Style::kCompact)
      : out_(out), style_(style) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();

  // Writes an object key; the next call writes its value.
  JsonWriter& Key(absl::string_view key);

  JsonWriter& String(absl::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  // Writes null when `value` is not finite.
  JsonWriter& Double(double value);
  JsonWriter& OptionalDouble(std::optional<double> value);
  // Writes null for an empty string.
  JsonWriter& StringOrNull(absl::string_view value) {
    return value.empty() ? Null() : String(value);
  }

  // Writes `json`, which must be one valid JSON value, as it is.
  JsonWriter& Raw(absl::string_view json);

 private:
  struct Level {
    bool is_array = false;
    bool is_empty = true;
    bool broke_line = false;  // kPretty: an item went to a line of its own
  };

  void BeforeValue(bool is_container);
  void NewLine();

  std::string* const out_;
  const Style style_;
  std::vector<Level> levels_;
  bool has_key_ = false;
};

// Appends `value` as a JSON string literal, quotes included.
void AppendJsonString(absl::string_view value, std::string* out);

// Appends the shortest decimal form of `value`, or null when not finite.
void AppendJsonDouble(double value, std::string* out);

}  // namespace firstframe

#endif  // LIB_BASE_JSON_WRITER_H_
