// What precision explains: rounding errors by profile and by what a trace
// shows.

#ifndef LIB_ACTIVATION_THRESHOLD_PROFILE_H_
#define LIB_ACTIVATION_THRESHOLD_PROFILE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/activation/trace_table.h"

namespace firstframe {

// Where the floors come from; kAuto: from each record's dtype.
enum class ThresholdProfile : uint8_t {
  kAuto,
  kExact,
  kFp32,
  kTf32,
  kFp16,
  kBf16
};

// "auto", "exact", "fp32", ...; InvalidArgument otherwise.
absl::StatusOr<ThresholdProfile> ParseThresholdProfile(absl::string_view name);

// Returns the relative error of one rounding; 0 for kAuto and kExact.
double ProfileRounding(ThresholdProfile profile);

// Returns the rounding of rows that do not say their dtype: bfloat16's, unless
// the extremes, which are elements, show more bits on both sides. Such runs are
// mostly bfloat16, and a floor that is too high only dulls the first rows; one
// too low would cry wolf.
double AssumedRounding(const TraceTable& a, const TraceTable& b);

// Returns the rounding that a row of a finer dtype takes over from the rows it
// was computed from: of bfloat16 or float16, when the first MiB of either text
// speaks of it. A norm in float32 between bfloat16 layers is no more exact than
// they are. Not of float8: there the results are what is recorded.
double CarriedRounding(const TraceTable& a, const TraceTable& b);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_THRESHOLD_PROFILE_H_
