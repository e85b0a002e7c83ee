#include "lib/activation/foreign_emitter.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/json_walk.h"
#include "lib/activation/python_json.h"

namespace firstframe {

ForeignRecord::ForeignRecord(absl::string_view module, absl::string_view tensor,
                             std::optional<int64_t> step)
    : module_(module) {
  line_ = "{\"module\": ";
  AppendPythonString(module, &line_);
  line_ += ", \"tensor\": ";
  AppendPythonString(tensor, &line_);
  absl::StrAppend(&line_, ", \"step\": ", step ? absl::StrCat(*step) : "null");
}

void ForeignRecord::Number(absl::string_view key, std::optional<double> value) {
  if (!value) return;
  absl::StrAppend(&line_, ", \"", key, "\": ");
  AppendPythonFloat(*value, &line_);
  ++values_;
}

void ForeignRecord::Shape(const std::vector<int64_t>& shape) {
  absl::StrAppend(&line_, ", \"shape\": [", absl::StrJoin(shape, ", "), "]");
}

void ForeignRecord::Dtype(absl::string_view dtype) {
  line_ += ", \"dtype\": ";
  AppendPythonString(dtype, &line_);
}

void ForeignRecord::Precision(absl::string_view key, double value) {
  absl::StrAppend(&line_, ", \"", key, "\": ");
  AppendPythonFloat(value, &line_);
}

void ForeignRecord::Checksum(absl::string_view text) {
  line_ += ", \"checksum\": ";
  AppendPythonString(text, &line_);
  ++values_;
}

absl::Status ForeignEmitter::Emit(const ForeignRecord& record) {
  if (record.empty()) {
    ++counts.skipped;
    return absl::OkStatus();
  }
  if (!SearchRegex(*layers_, record.module())) return absl::OkStatus();
  ++counts.records;
  return emit_(record.Line());
}

std::string JsonText(absl::string_view value) {
  if (value.size() < 2 || value.front() != '"') return std::string(value);
  return json_scan::DecodeString(value.substr(1, value.size() - 2));
}

std::vector<int64_t> ReadJsonShape(absl::string_view value) {
  std::vector<int64_t> shape;
  json_scan::ForEachElement(value, [&](absl::string_view item) {
    shape.push_back(
        static_cast<int64_t>(json_scan::ReadNumber(item).value_or(0)));
    return absl::OkStatus();
  }).IgnoreError();
  return shape;
}

double NumelOf(const std::vector<int64_t>& shape) {
  double numel = 1;
  for (const int64_t size : shape) numel *= static_cast<double>(size);
  return numel;
}

}  // namespace firstframe
