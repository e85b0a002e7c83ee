#include "lib/metrics/perf_settings.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace firstframe {
namespace {

using Getter = absl::FunctionRef<const char*(const char*)>;

// Python takes 14_000_000_000: an underscore between two digits goes.
std::string WithoutUnderscores(absl::string_view text) {
  std::string kept;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool groups = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                        absl::ascii_isdigit(text[i - 1]) &&
                        absl::ascii_isdigit(text[i + 1]);
    if (!groups) kept += text[i];
  }
  return kept;
}

int64_t IntOr(Getter get, const char* name, int64_t otherwise) {
  const char* text = get(name);
  int64_t value;
  return text != nullptr && absl::SimpleAtoi(WithoutUnderscores(text), &value)
             ? value
             : otherwise;
}

std::optional<double> OptionalDouble(Getter get, const char* name) {
  const char* text = get(name);
  double value;
  if (text != nullptr && absl::SimpleAtod(WithoutUnderscores(text), &value)) {
    return value;
  }
  return std::nullopt;
}

std::optional<int64_t> NonZero(int64_t value) {
  if (value == 0) return std::nullopt;
  return value;
}

}  // namespace

std::string PerfSettings::Tag() const {
  return absl::StrCat("[Perf][rank", rank, "]");
}

std::optional<std::string> PerfSettings::RankJsonPath() const {
  if (!json_path || world_size <= 1) return json_path;
  return absl::StrCat(*json_path, ".rank", rank);
}

PerfSettings ReadPerfSettings(Getter get) {
  PerfSettings settings;
  settings.level = std::max<int64_t>(0, IntOr(get, "VIDEOX_PERF", 0));
  if (const char* path = get("VIDEOX_PERF_JSON"); path && *path != '\0') {
    settings.json_path = path;
  }
  settings.warmup = IntOr(get, "VIDEOX_PERF_WARMUP", 0);
  if (const char* ranks = get("VIDEOX_PERF_RANKS")) {
    settings.log_all_ranks =
        absl::AsciiStrToLower(absl::StripAsciiWhitespace(ranks)) == "all";
  }
  settings.peak_tflops = OptionalDouble(get, "VIDEOX_PERF_PEAK_TFLOPS");
  settings.dit_params = NonZero(IntOr(get, "VIDEOX_PERF_DIT_PARAMS", 0));
  settings.price_attention = IntOr(get, "VIDEOX_PERF_FLOPS_ATTN", 1) != 0;
  settings.every = std::max<int64_t>(1, IntOr(get, "VIDEOX_PERF_EVERY", 50));
  settings.total_steps = NonZero(IntOr(get, "VIDEOX_PERF_TOTAL_STEPS", 0));
  settings.flops_coefficient = OptionalDouble(get, "VIDEOX_PERF_FLOPS_COEF");
  settings.rank = IntOr(get, "RANK", 0);
  settings.world_size = std::max<int64_t>(1, IntOr(get, "WORLD_SIZE", 1));
  return settings;
}

int64_t DataParallelDegree(int64_t world_size, int64_t sequence_parallel) {
  return std::max<int64_t>(
      1, world_size / std::max<int64_t>(1, sequence_parallel));
}

}  // namespace firstframe
