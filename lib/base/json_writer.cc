#include "lib/base/json_writer.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/utf8.h"

namespace firstframe {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace

void AppendJsonString(absl::string_view value, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('"');
  size_t start = 0;
  size_t i = 0;
  const auto flush = [&] { out->append(value.data() + start, i - start); };
  while (i < value.size()) {
    const unsigned char c = value[i];
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\' && c != 0x7f) {
      ++i;
      continue;
    }
    if (c >= 0x80) {
      const size_t length = Utf8SequenceLength(value.substr(i));
      if (length > 0) {
        i += length;
        continue;
      }
      flush();
      out->append(kReplacementCharacter.data(), kReplacementCharacter.size());
    } else {
      flush();
      switch (c) {
        case '"':
          out->append("\\\"");
          break;
        case '\\':
          out->append("\\\\");
          break;
        case '\n':
          out->append("\\n");
          break;
        case '\r':
          out->append("\\r");
          break;
        case '\t':
          out->append("\\t");
          break;
        default:
          out->append("\\u00");
          out->push_back(kHex[c >> 4]);
          out->push_back(kHex[c & 15]);
      }
    }
    start = ++i;
  }
  flush();
  out->push_back('"');
}

void AppendJsonDouble(double value, std::string* out) {
  if (!std::isfinite(value)) {
    out->append("null");
    return;
  }
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  out->append(buffer, result.ptr);
}

void JsonWriter::NewLine() {
  out_->push_back('\n');
  out_->append(2 * levels_.size(), ' ');
}

void JsonWriter::BeforeValue(bool is_container) {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (!level.is_array) {
    FF_CHECK(has_key_);
    has_key_ = false;
    return;
  }
  if (!level.is_empty) out_->push_back(',');
  if (style_ == Style::kPretty) {
    if (is_container) {
      NewLine();
      level.broke_line = true;
    } else if (!level.is_empty) {
      out_->push_back(' ');
    }
  }
  level.is_empty = false;
}

JsonWriter& JsonWriter::BeginObject() {
  BeforeValue(/*is_container=*/true);
  out_->push_back('{');
  levels_.push_back({.is_array = false});
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  BeforeValue(/*is_container=*/true);
  out_->push_back('[');
  levels_.push_back({.is_array = true});
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  FF_CHECK(!levels_.empty() && !levels_.back().is_array && !has_key_);
  const bool is_empty = levels_.back().is_empty;
  levels_.pop_back();
  if (style_ == Style::kPretty && !is_empty) NewLine();
  out_->push_back('}');
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  FF_CHECK(!levels_.empty() && levels_.back().is_array);
  const bool broke_line = levels_.back().broke_line;
  levels_.pop_back();
  if (broke_line) NewLine();
  out_->push_back(']');
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  FF_CHECK(!levels_.empty() && !levels_.back().is_array && !has_key_);
  Level& level = levels_.back();
  if (!level.is_empty) out_->push_back(',');
  level.is_empty = false;
  if (style_ == Style::kPretty) NewLine();
  AppendJsonString(key, out_);
  out_->push_back(':');
  if (style_ == Style::kPretty) out_->push_back(' ');
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  BeforeValue(/*is_container=*/false);
  AppendJsonString(value, out_);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  BeforeValue(/*is_container=*/false);
  absl::StrAppend(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Uint(uint64_t value) {
  BeforeValue(/*is_container=*/false);
  absl::StrAppend(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  return Raw(value ? "true" : "false");
}

JsonWriter& JsonWriter::Null() { return Raw("null"); }

JsonWriter& JsonWriter::Double(double value) {
  BeforeValue(/*is_container=*/false);
  AppendJsonDouble(value, out_);
  return *this;
}

JsonWriter& JsonWriter::OptionalDouble(std::optional<double> value) {
  return value ? Double(*value) : Null();
}

JsonWriter& JsonWriter::Raw(absl::string_view json) {
  BeforeValue(/*is_container=*/false);
  out_->append(json.data(), json.size());
  return *this;
}

}  // namespace firstframe
