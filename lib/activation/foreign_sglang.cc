#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/activation/foreign_emitter.h"
#include "lib/activation/json_scan.h"
#include "lib/activation/json_walk.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

using json_scan::FindMember;
using json_scan::ReadNumber;

// "location": {"step": 3}.
std::optional<int64_t> StepOf(absl::string_view line) {
  const auto location = FindMember(line, "location");
  if (!location || location->front() != '{') return std::nullopt;
  const auto step = FindMember(*location, "step");
  const auto number = step ? ReadNumber(*step) : std::nullopt;
  if (!number) return std::nullopt;
  return static_cast<int64_t>(*number);
}

// Tensors of all layers have one name; the files they come from, of the
// baseline "x" and the target "y", tell the layer.
std::string ModuleOf(absl::string_view line, bool target_side,
                     const RE2& layer) {
  const std::string name = JsonText(FindMember(line, "name").value_or(""));
  const auto bundle = FindMember(line, "raw_bundle_info");
  if (!bundle || bundle->front() != '{') return name;
  const auto side = FindMember(*bundle, target_side ? "y" : "x");
  std::string number;
  if (!side || !RE2::PartialMatch(ToRe2(*side), layer, &number)) return name;
  return absl::StrCat("layers.", number, ".", name);
}

}  // namespace

absl::Status ReadSglang(absl::string_view text, bool target_side,
                        ForeignEmitter* out) {
  const absl::string_view side = target_side ? "target" : "baseline";
  FF_ASSIGN_OR_RETURN(const auto layer, CompileRegex(R"re(layer_id=(\d+))re"));
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
    const std::string type = JsonText(FindMember(line, "type").value_or(""));
    const auto info = FindMember(line, side);
    if ((type != "comparison_tensor" && type != "comparison") || !info) {
      ++out->counts.skipped;
      continue;
    }
    ForeignRecord record(ModuleOf(line, target_side, *layer), "out",
                         StepOf(line));
    if (const auto stats = FindMember(*info, "stats")) {
      for (const absl::string_view key :
           {"abs_mean", "min", "max", "mean", "std"}) {
        if (const auto value = FindMember(*stats, key)) {
          record.Number(key, ReadNumber(*value));
        }
      }
    }
    if (const auto shape = FindMember(*info, "shape")) {
      record.Shape(ReadJsonShape(*shape));
    }
    if (const auto dtype = FindMember(*info, "dtype")) {
      record.Dtype(JsonText(*dtype));
    }
    FF_RETURN_IF_ERROR(out->Emit(record));
  }
  return absl::OkStatus();
}

}  // namespace firstframe
