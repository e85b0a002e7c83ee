#include "lib/activation/foreign_trace.h"

#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/json_walk.h"
#include "lib/activation/python_json.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

using json_scan::FindMember;
using json_scan::ForEachElement;
using json_scan::ForEachMember;
using json_scan::ReadNumber;

// bfloat16 statistics have 8 bits; "%.4f" and "%.6e" print so many digits.
constexpr double kBf16Statistics = 0x1p-8;
constexpr double kFourDecimals = 5e-5;
constexpr double kSevenDigits = 5e-7;

std::string Text(absl::string_view value) {
  if (value.size() < 2 || value.front() != '"') return std::string(value);
  return json_scan::DecodeString(value.substr(1, value.size() - 2));
}

// Builds one record's line, keys in the order added.
class Record {
 public:
  Record(absl::string_view module, absl::string_view tensor,
         std::optional<int64_t> step)
      : module_(module) {
    line_ = "{\"module\": ";
    AppendPythonString(module, &line_);
    line_ += ", \"tensor\": ";
    AppendPythonString(tensor, &line_);
    absl::StrAppend(&line_,
                    ", \"step\": ", step ? absl::StrCat(*step) : "null");
  }

  void Number(absl::string_view key, std::optional<double> value) {
    if (!value) return;
    absl::StrAppend(&line_, ", \"", key, "\": ");
    AppendPythonFloat(*value, &line_);
    ++numbers_;
  }
  void Shape(const std::vector<int64_t>& shape) {
    absl::StrAppend(&line_, ", \"shape\": [", absl::StrJoin(shape, ", "), "]");
  }
  void Dtype(absl::string_view dtype) {
    line_ += ", \"dtype\": ";
    AppendPythonString(dtype, &line_);
  }
  // The precision of the numbers, for the reader.
  void Precision(absl::string_view key, double value) {
    absl::StrAppend(&line_, ", \"", key, "\": ");
    AppendPythonFloat(value, &line_);
  }

  const std::string& module() const { return module_; }
  bool empty() const { return numbers_ == 0; }
  std::string Line() const { return line_ + "}"; }

 private:
  std::string module_, line_;
  int numbers_ = 0;
};

class Normalizer {
 public:
  Normalizer(const ForeignOptions& options, std::unique_ptr<const RE2> layers,
             absl::FunctionRef<absl::Status(const std::string&)> emit)
      : options_(options), layers_(std::move(layers)), emit_(emit) {}

  absl::Status Emit(const Record& record) {
    if (record.empty()) {
      ++counts.skipped;
      return absl::OkStatus();
    }
    if (!SearchRegex(*layers_, record.module())) return absl::OkStatus();
    ++counts.records;
    return emit_(record.Line());
  }

  absl::Status Msprobe(absl::string_view text);
  absl::Status Sglang(absl::string_view text);
  absl::Status TeLog(absl::string_view text);
  absl::Status Torchtitan(absl::string_view text);

  ForeignCounts counts;

 private:
  absl::Status MsprobeTensors(const std::string& module,
                              const std::string& label,
                              absl::string_view value);
  absl::Status MsprobeTensor(const std::string& module,
                             const std::string& label,
                             absl::string_view object);

  const ForeignOptions& options_;
  const std::unique_ptr<const RE2> layers_;
  absl::FunctionRef<absl::Status(const std::string&)> emit_;
};

std::vector<int64_t> ReadShape(absl::string_view value) {
  std::vector<int64_t> shape;
  ForEachElement(value, [&](absl::string_view item) {
    shape.push_back(static_cast<int64_t>(ReadNumber(item).value_or(0)));
    return absl::OkStatus();
  }).IgnoreError();
  return shape;
}

double NumelOf(const std::vector<int64_t>& shape) {
  double numel = 1;
  for (const int64_t size : shape) numel *= static_cast<double>(size);
  return numel;
}

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

absl::Status Normalizer::MsprobeTensor(const std::string& module,
                                       const std::string& label,
                                       absl::string_view object) {
  const auto shape_text = FindMember(object, "shape");
  const std::vector<int64_t> shape =
      shape_text ? ReadShape(*shape_text) : std::vector<int64_t>();
  const std::string dtype = Text(FindMember(object, "dtype").value_or(""));
  Record record(module, label, std::nullopt);
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
  return Emit(record);
}

// A tensor's object, null, or lists and dicts of them.
absl::Status Normalizer::MsprobeTensors(const std::string& module,
                                        const std::string& label,
                                        absl::string_view value) {
  if (value.front() == '[') {
    int index = 0;
    return ForEachElement(value, [&](absl::string_view item) {
      return MsprobeTensors(module, absl::StrCat(label, "[", index++, "]"),
                            item);
    });
  }
  if (value.front() != '{') return absl::OkStatus();
  if (const auto type = FindMember(value, "type");
      type && absl::StrContains(Text(*type), "Tensor")) {
    return MsprobeTensor(module, label, value);
  }
  if (FindMember(value, "type")) return absl::OkStatus();  // a number, a slice
  return ForEachMember(value, [&](absl::string_view key,
                                  absl::string_view item) {
    return MsprobeTensors(
        module, absl::StrCat(label, ".", json_scan::DecodeString(key)), item);
  });
}

absl::Status Normalizer::Msprobe(absl::string_view text) {
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
                FF_RETURN_IF_ERROR(MsprobeTensors(
                    parsed.module, absl::StrCat(prefix, label), *tensors));
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

absl::Status Normalizer::Sglang(absl::string_view text) {
  const absl::string_view side = options_.target_side ? "target" : "baseline";
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const char* const end = line.data() + line.size();
    const char* const begin = json_scan::SkipSpace(line.data(), end);
    if (json_scan::SkipValue(begin, end) == nullptr || *begin != '{') {
      return absl::DataLossError(
          absl::StrCat("sglang report: line ", number, " is no JSON object"));
    }
    const std::string type = Text(FindMember(line, "type").value_or(""));
    const auto info = FindMember(line, side);
    if ((type != "comparison_tensor" && type != "comparison") || !info) {
      ++counts.skipped;
      continue;
    }
    Record record(Text(FindMember(line, "name").value_or("")), "out",
                  std::nullopt);
    if (const auto stats = FindMember(*info, "stats")) {
      for (const absl::string_view key :
           {"abs_mean", "min", "max", "mean", "std"}) {
        if (const auto value = FindMember(*stats, key)) {
          record.Number(key, ReadNumber(*value));
        }
      }
    }
    if (const auto shape = FindMember(*info, "shape")) {
      record.Shape(ReadShape(*shape));
    }
    if (const auto dtype = FindMember(*info, "dtype")) {
      record.Dtype(Text(*dtype));
    }
    FF_RETURN_IF_ERROR(Emit(record));
  }
  return absl::OkStatus();
}

// "decoder.1.attn_activation_l1_norm   iteration=000004   value=12.3456". Lines
// of one tensor and iteration that follow each other make one record.
absl::Status Normalizer::TeLog(absl::string_view text) {
  FF_ASSIGN_OR_RETURN(
      const auto pattern,
      CompileRegex(
          R"re((\S+)_(activation|gradient|weight|output|wgrad|dgrad|)re"
          R"re(fprop)_([\w%.:+-]+?)\s+iteration=0*(\d+)\s+value=(\S+))re"));
  std::optional<Record> open;
  std::string open_name;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string layer, tensor, stat, iteration, value;
    if (!RE2::PartialMatch(ToRe2(line), *pattern, &layer, &tensor, &stat,
                           &iteration, &value)) {
      counts.skipped += !absl::StripAsciiWhitespace(line).empty();
      continue;
    }
    int64_t step = 0;
    double number = 0;
    if (!absl::SimpleAtoi(iteration, &step) ||
        !absl::SimpleAtod(value, &number)) {
      ++counts.skipped;
      continue;
    }
    const std::string name = absl::StrCat(layer, "\n", tensor, "\n", step);
    if (name != open_name) {
      if (open) FF_RETURN_IF_ERROR(Emit(*open));
      open.emplace(layer, tensor, step);
      open->Precision("stat_abs", kFourDecimals);
      open_name = name;
    }
    open->Number(stat == "cur_amax" ? "amax" : stat, number);
  }
  if (open) FF_RETURN_IF_ERROR(Emit(*open));
  if (counts.records == 0) {
    return absl::DataLossError(
        "te-log: no line like 'LAYER_activation_STAT iteration=N value=X'");
  }
  return absl::OkStatus();
}

// "[layers.0.attention/op_12_aten.mm.default]" opens a block; "Shape: [2, 3]"
// and the like follow. "Output hash" is the L1 norm.
absl::Status Normalizer::Torchtitan(absl::string_view text) {
  FF_ASSIGN_OR_RETURN(const auto header,
                      CompileRegex(R"re(\[([^\]\s]+)/op_\d+_([^\]\s]+)\])re"));
  FF_ASSIGN_OR_RETURN(
      const auto field,
      CompileRegex(R"re(^\s*([A-Za-z][A-Za-z0-9 _]*?)\s*[:=]\s*(.+?)\s*$)re"));
  std::string module, op, dtype;
  std::vector<int64_t> shape;
  std::vector<std::pair<std::string, double>> numbers;
  const auto flush = [&]() -> absl::Status {
    if (module.empty()) return absl::OkStatus();
    Record record(absl::StrCat(module, ".", op), "out", std::nullopt);
    for (const auto& [key, value] : numbers) record.Number(key, value);
    if (!shape.empty()) record.Shape(shape);
    if (!dtype.empty()) record.Dtype(dtype);
    record.Precision("stat_rel", kSevenDigits);
    module.clear(), dtype.clear(), shape.clear(), numbers.clear();
    return Emit(record);
  };
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string next_module, next_op, key, value;
    if (RE2::PartialMatch(ToRe2(line), *header, &next_module, &next_op)) {
      FF_RETURN_IF_ERROR(flush());
      module = next_module, op = next_op;
      continue;
    }
    if (module.empty() || !RE2::FullMatch(ToRe2(line), *field, &key, &value)) {
      counts.skipped += !absl::StripAsciiWhitespace(line).empty();
      continue;
    }
    key = absl::AsciiStrToLower(key);
    double number = 0;
    if (key == "shape" || key == "output shape") {
      shape = ReadShape(value);
    } else if (key == "dtype" || key == "output dtype") {
      dtype = value;
    } else if (absl::SimpleAtod(value, &number)) {
      if ((key == "output hash" || key == "hash" || key == "l1") &&
          NumelOf(shape) > 0 && !shape.empty()) {
        numbers.emplace_back("abs_mean", number / NumelOf(shape));
      } else if (key == "min" || key == "max" || key == "mean") {
        numbers.emplace_back(key, number);
      } else if (key == "l2" && !shape.empty()) {
        numbers.emplace_back("rms", number / std::sqrt(NumelOf(shape)));
      }
    }
  }
  FF_RETURN_IF_ERROR(flush());
  if (counts.records == 0) {
    return absl::DataLossError(
        "torchtitan log: no block like '[layers.0.attention/op_1_aten.mm]'");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TraceDialect> ParseTraceDialect(absl::string_view name) {
  if (name == "msprobe") return TraceDialect::kMsprobe;
  if (name == "sglang") return TraceDialect::kSglang;
  if (name == "te-log") return TraceDialect::kTeLog;
  if (name == "torchtitan") return TraceDialect::kTorchtitan;
  return absl::InvalidArgumentError(absl::StrCat(
      "dialect '", name, "': expected msprobe, sglang, te-log or torchtitan"));
}

absl::StatusOr<ForeignCounts> NormalizeTrace(
    absl::string_view text, TraceDialect dialect, const ForeignOptions& options,
    absl::FunctionRef<absl::Status(const std::string& line)> emit) {
  FF_ASSIGN_OR_RETURN(auto layers, CompileRegex(options.layers));
  Normalizer normalizer(options, std::move(layers), emit);
  switch (dialect) {
    case TraceDialect::kMsprobe:
      FF_RETURN_IF_ERROR(normalizer.Msprobe(text));
      break;
    case TraceDialect::kSglang:
      FF_RETURN_IF_ERROR(normalizer.Sglang(text));
      break;
    case TraceDialect::kTeLog:
      FF_RETURN_IF_ERROR(normalizer.TeLog(text));
      break;
    case TraceDialect::kTorchtitan:
      FF_RETURN_IF_ERROR(normalizer.Torchtitan(text));
      break;
  }
  return normalizer.counts;
}

}  // namespace firstframe
