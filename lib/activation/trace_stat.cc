#include "lib/activation/trace_stat.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/activation/python_json.h"
#include "lib/base/edit_distance.h"

namespace firstframe {
namespace {

constexpr std::array<absl::string_view, kNumTraceStats> kNames = {
    "abs_mean", "sum",   "min",   "max", "mean",     "std",     "shape",
    "dtype",    "numel", "rms",   "nan", "inf_pos",  "inf_neg", "zero",
    "amax_idx", "h_set", "h_pos", "sk",  "exp_hist", "samp"};

// What PyTorch raises for t.min() of a tensor without elements, as the hook
// writes it: f"<error: {exc!r}>".
std::string EmptyReductionError(absl::string_view name) {
  std::string text = "<error: RuntimeError(";
  AppendPythonRepr(
      absl::StrCat(name,
                   "(): Expected reduction dim to be specified for "
                   "input.numel() == 0. Specify the reduction dim with the "
                   "'dim' argument."),
      &text);
  text += ")>";
  return text;
}

void AppendFloats(const float* values, int count, std::string* out) {
  // Little-endian, as every machine that Firstframe builds for.
  const std::string bytes(reinterpret_cast<const char*>(values), 4 * count);
  absl::StrAppend(out, "\"", absl::Base64Escape(bytes), "\"");
}

void AppendExponents(const TensorStats& values, std::string* out) {
  out->push_back('[');
  bool first = true;
  for (int i = 0; i < kNumExponents; ++i) {
    if (values.exponents[i] == 0) continue;
    absl::StrAppend(out, first ? "" : ", ", "[", i, ", ", values.exponents[i],
                    "]");
    first = false;
  }
  out->push_back(']');
}

void AppendValue(TraceStat stat, const TensorStats& v, DType dtype,
                 const Shape& shape, std::string* out) {
  switch (stat) {
    case TraceStat::kAbsMean:
      return AppendPythonFloat(TorchAbsMean(v), out);
    case TraceStat::kSum:
      return AppendPythonFloat(TorchSum(v), out);
    case TraceStat::kMin:
    case TraceStat::kMax:
      if (v.numel == 0) {
        return AppendPythonString(
            EmptyReductionError(stat == TraceStat::kMin ? "min" : "max"), out);
      }
      return AppendPythonFloat(
          stat == TraceStat::kMin ? TorchMin(v) : TorchMax(v), out);
    case TraceStat::kMean:
      return AppendPythonFloat(TorchMean(v), out);
    case TraceStat::kStd:
      return AppendPythonFloat(TorchStd(v), out);
    case TraceStat::kShape:
      absl::StrAppend(out, "[", absl::StrJoin(shape, ", "), "]");
      return;
    case TraceStat::kDtype:
      return AppendPythonString(TorchDTypeName(dtype), out);
    case TraceStat::kNumel:
      absl::StrAppend(out, v.numel);
      return;
    case TraceStat::kRms:
      return AppendPythonFloat(static_cast<float>(Rms(v)), out);
    case TraceStat::kNan:
      absl::StrAppend(out, v.nan);
      return;
    case TraceStat::kInfPos:
      absl::StrAppend(out, v.inf_pos);
      return;
    case TraceStat::kInfNeg:
      absl::StrAppend(out, v.inf_neg);
      return;
    case TraceStat::kZero:
      absl::StrAppend(out, v.zero);
      return;
    case TraceStat::kAmaxIdx:
      absl::StrAppend(out,
                      v.amax_index < 0 ? "null" : absl::StrCat(v.amax_index));
      return;
    case TraceStat::kHSet:
      absl::StrAppendFormat(out, "\"%016x\"", v.h_set);
      return;
    case TraceStat::kHPos:
      absl::StrAppendFormat(out, "\"%016x\"", v.h_pos);
      return;
    case TraceStat::kSk: {
      std::array<float, kSketchSize> sketch;
      std::copy(v.sketch.begin(), v.sketch.end(), sketch.begin());
      return AppendFloats(sketch.data(), kSketchSize, out);
    }
    case TraceStat::kExpHist:
      return AppendExponents(v, out);
    case TraceStat::kSamp:
      return AppendFloats(v.samples.data(),
                          std::min<int64_t>(kNumSamples, v.numel), out);
  }
}

}  // namespace

absl::string_view TraceStatName(TraceStat stat) {
  return kNames[static_cast<int>(stat)];
}

std::optional<TraceStat> ParseTraceStat(absl::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<TraceStat>(found - kNames.begin());
}

TraceStatSelection ParseTraceStats(absl::string_view spec) {
  TraceStatSelection selection;
  for (absl::string_view name : absl::StrSplit(spec, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (name.empty()) continue;
    const std::optional<TraceStat> stat = ParseTraceStat(name);
    if (stat) {
      if (std::find(selection.stats.begin(), selection.stats.end(), *stat) ==
          selection.stats.end()) {
        selection.stats.push_back(*stat);
      }
      continue;
    }
    std::vector<std::string> valid(kNames.begin(), kNames.end());
    const auto nearest = NearestName(name, valid);
    std::sort(valid.begin(), valid.end());
    std::string quoted;
    AppendPythonRepr(name, &quoted);
    selection.warnings.push_back(absl::StrCat(
        "FASTVIDEO_TRACE_STATS contains unknown stat ", quoted, "; valid: ['",
        absl::StrJoin(valid, "', '"), "']",
        nearest ? absl::StrCat("; did you mean '", *nearest, "'?") : ""));
  }
  return selection;
}

StatsRequest RequestFor(const std::vector<TraceStat>& stats) {
  StatsRequest request;
  for (const TraceStat stat : stats) {
    request.hashes |= stat == TraceStat::kHSet || stat == TraceStat::kHPos;
    request.sketch |= stat == TraceStat::kSk;
    request.exponents |= stat == TraceStat::kExpHist;
    request.samples |= stat == TraceStat::kSamp;
  }
  return request;
}

void AppendTraceStats(const std::vector<TraceStat>& stats,
                      const TensorStats& values, DType dtype,
                      const Shape& shape, std::string* out) {
  for (const TraceStat stat : stats) {
    absl::StrAppend(out, ", \"", TraceStatName(stat), "\": ");
    AppendValue(stat, values, dtype, shape, out);
  }
}

std::string TorchDTypeName(DType dtype) {
  const absl::string_view name = GetDTypeInfo(dtype).torch_name;
  return name.empty() ? std::string(DTypeName(dtype))
                      : absl::StrCat("torch.", name);
}

}  // namespace firstframe
