#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/activation/foreign_emitter.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"

namespace firstframe {
namespace {

constexpr double kFourDecimals = 5e-5;  // what "{:.4f}" leaves out at most

}  // namespace

// "decoder.1.attn_activation_l1_norm   iteration=000004   value=12.3456". Lines
// of one tensor and iteration that follow each other make one record.
absl::Status ReadTeLog(absl::string_view text, ForeignEmitter* out) {
  FF_ASSIGN_OR_RETURN(
      const auto pattern,
      CompileRegex(
          R"re((\S+)_(activation|gradient|weight|output|wgrad|dgrad|)re"
          R"re(fprop)_([\w%.:+-]+?)\s+iteration=0*(\d+)\s+value=(\S+))re"));
  std::optional<ForeignRecord> open;
  std::string open_name;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string layer, tensor, stat, iteration, value;
    if (!RE2::PartialMatch(ToRe2(line), *pattern, &layer, &tensor, &stat,
                           &iteration, &value)) {
      out->counts.skipped += !absl::StripAsciiWhitespace(line).empty();
      continue;
    }
    int64_t step = 0;
    double number = 0;
    if (!absl::SimpleAtoi(iteration, &step) ||
        !absl::SimpleAtod(value, &number)) {
      ++out->counts.skipped;
      continue;
    }
    const std::string name = absl::StrCat(layer, "\n", tensor, "\n", step);
    if (name != open_name) {
      if (open) FF_RETURN_IF_ERROR(out->Emit(*open));
      open.emplace(layer, tensor, step);
      open->Precision("stat_abs", kFourDecimals);
      open_name = name;
    }
    open->Number(stat == "cur_amax" ? "amax" : stat, number);
  }
  if (open) FF_RETURN_IF_ERROR(out->Emit(*open));
  if (out->counts.records == 0) {
    return absl::DataLossError(
        "te-log: no line like 'LAYER_activation_STAT iteration=N value=X'");
  }
  return absl::OkStatus();
}

}  // namespace firstframe
