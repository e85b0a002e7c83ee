#include "lib/activation/threshold_profile.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr double kFloat32Rounding = 2.4e-8;
constexpr double kFloat16Rounding = 2.0e-4;  // TF32 keeps as many bits
constexpr double kBfloat16Rounding = 1.6e-3;
constexpr int kEnoughRows = 1000;
constexpr size_t kLookedAtBytes = size_t{1} << 20;

bool IsBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return (bits & 0xFFFF) == 0;
}

// Whether some extreme has more bits than a bfloat16. A maximum without a
// minimum counts as more: nothing speaks for bfloat16.
bool HasWiderExtremes(const TraceTable& table) {
  bool has_pair = false, has_maximum = false;
  int seen = 0;
  for (const TraceRow& row : table.rows) {
    if ((row.flags & TraceRow::kUnread) != 0 ||
        row.Kind(kMax) != ValueKind::kNumber) {
      continue;
    }
    has_maximum = true;
    if (row.Kind(kMin) != ValueKind::kNumber) continue;
    if (!IsBfloat16(row.values[kMin]) || !IsBfloat16(row.values[kMax])) {
      return true;
    }
    has_pair = true;
    if (++seen == kEnoughRows) break;
  }
  return has_maximum && !has_pair;
}

double RoundingSpokenOf(absl::string_view text) {
  text = text.substr(0, kLookedAtBytes);
  if (absl::StrContains(text, "bfloat16")) return kBfloat16Rounding;
  return absl::StrContains(text, "float16") ? kFloat16Rounding : 0;
}

}  // namespace

absl::StatusOr<ThresholdProfile> ParseThresholdProfile(absl::string_view name) {
  if (name == "auto") return ThresholdProfile::kAuto;
  if (name == "exact") return ThresholdProfile::kExact;
  if (name == "fp32") return ThresholdProfile::kFp32;
  if (name == "tf32") return ThresholdProfile::kTf32;
  if (name == "fp16") return ThresholdProfile::kFp16;
  if (name == "bf16") return ThresholdProfile::kBf16;
  return absl::InvalidArgumentError(
      absl::StrCat("threshold '", name,
                   "': expected auto, exact, fp32, tf32, fp16 or bf16"));
}

double ProfileRounding(ThresholdProfile profile) {
  switch (profile) {
    case ThresholdProfile::kFp32:
      return kFloat32Rounding;
    case ThresholdProfile::kTf32:
    case ThresholdProfile::kFp16:
      return kFloat16Rounding;
    case ThresholdProfile::kBf16:
      return kBfloat16Rounding;
    default:
      return 0;
  }
}

double AssumedRounding(const TraceTable& a, const TraceTable& b) {
  return HasWiderExtremes(a) && HasWiderExtremes(b) ? kFloat32Rounding
                                                    : kBfloat16Rounding;
}

double CarriedRounding(const TraceTable& a, const TraceTable& b) {
  return std::max(RoundingSpokenOf(a.text), RoundingSpokenOf(b.text));
}

}  // namespace firstframe
