#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/activation/foreign_emitter.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/json_walk.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

using json_scan::FindMember;
using json_scan::ForEachElement;
using json_scan::ForEachMember;
using json_scan::ReadNumber;

// msprobe reduces in the tensor's own dtype: bfloat16 statistics have 8 bits.
constexpr double kBf16Statistics = 0x1p-8;

// "Module.a.b.Linear.forward.0" names module a.b; an API, "Torch.matmul.3.
// forward", counts its calls before the direction.
struct MsprobeName {
  std::string module;
  bool is_backward = false;
};
MsprobeName ParseMsprobeName(absl::string_view name) {
  std::vector<std::string> parts = absl::StrSplit(name, '.');
  MsprobeName out;
  const auto is_number = [](const std::string& part) {
    int64_t ignored;
    return absl::SimpleAtoi(part, &ignored);
  };
  const bool is_module =
      !parts.empty() && (parts[0] == "Module" || parts[0] == "Cell");
  if (!parts.empty()) parts.erase(parts.begin());
  if (!parts.empty() && is_number(parts.back())) parts.pop_back();
  if (!parts.empty()) {
    out.is_backward = parts.back() == "backward";
    if (out.is_backward || parts.back() == "forward") parts.pop_back();
  }
  if (is_module) {
    if (parts.size() > 1) parts.pop_back();  // the class
  } else if (!parts.empty() && is_number(parts.back())) {
    parts.pop_back();
  }
  out.module = absl::StrJoin(parts, ".");
  return out;
}

absl::Status ReadTensor(const std::string& module, const std::string& label,
                        absl::string_view object, ForeignEmitter* out) {
  const auto shape_text = FindMember(object, "shape");
  const std::vector<int64_t> shape =
      shape_text ? ReadJsonShape(*shape_text) : std::vector<int64_t>();
  const std::string dtype = JsonText(FindMember(object, "dtype").value_or(""));
  ForeignRecord record(module, label, std::nullopt);
  const auto number = [&](absl::string_view key) {
    const auto value = FindMember(object, key);
    return value ? ReadNumber(*value) : std::nullopt;
  };
  record.Number("min", number("Min"));
  record.Number("max", number("Max"));
  record.Number("mean", number("Mean"));
  if (const auto norm = number("Norm"); norm && NumelOf(shape) > 0) {
    record.Number("rms", *norm / std::sqrt(NumelOf(shape)));
  }
  if (shape_text) record.Shape(shape);
  if (!dtype.empty()) record.Dtype(dtype);
  if (absl::EndsWith(dtype, "bfloat16")) {
    record.Precision("stat_rel", kBf16Statistics);
  }
  // Checksum modes: CRC-32 of the bytes, or a xor, and no numbers.
  if (const auto md5 = FindMember(object, "md5"); md5 && *md5 != "null") {
    record.Checksum(JsonText(*md5));
  }
  return out->Emit(record);
}

// A tensor's object, null, or lists and dicts of them.
absl::Status ReadTensors(const std::string& module, const std::string& label,
                         absl::string_view value, ForeignEmitter* out) {
  if (value.front() == '[') {
    int index = 0;
    return ForEachElement(value, [&](absl::string_view item) {
      return ReadTensors(module, absl::StrCat(label, "[", index++, "]"), item,
                         out);
    });
  }
  if (value.front() != '{') return absl::OkStatus();
  if (const auto type = FindMember(value, "type");
      type && absl::StrContains(JsonText(*type), "Tensor")) {
    return ReadTensor(module, label, value, out);
  }
  if (FindMember(value, "type")) return absl::OkStatus();  // a number, a slice
  return ForEachMember(
      value, [&](absl::string_view key, absl::string_view item) {
        return ReadTensors(
            module, absl::StrCat(label, ".", json_scan::DecodeString(key)),
            item, out);
      });
}

}  // namespace

absl::Status ReadMsprobe(absl::string_view text, ForeignEmitter* out) {
  bool has_data = false;
  const absl::Status status =
      ForEachMember(text, [&](absl::string_view key, absl::string_view value) {
        if (key != "data") return absl::OkStatus();
        has_data = true;
        return ForEachMember(
            value, [&](absl::string_view name, absl::string_view call) {
              const MsprobeName parsed =
                  ParseMsprobeName(json_scan::DecodeString(name));
              const std::string prefix = parsed.is_backward ? "grad_" : "";
              for (const auto& [part, label] : {std::pair("input_args", "in"),
                                                {"input", "in"},
                                                {"input_kwargs", "in"},
                                                {"output", "out"}}) {
                const auto tensors = FindMember(call, part);
                if (!tensors) continue;
                FF_RETURN_IF_ERROR(ReadTensors(
                    parsed.module, absl::StrCat(prefix, label), *tensors, out));
              }
              return absl::OkStatus();
            });
      });
  if (!status.ok()) return Annotate(status, "msprobe dump");
  if (!has_data) {
    return absl::DataLossError("msprobe dump: no \"data\" object");
  }
  return absl::OkStatus();
}

}  // namespace firstframe
