// What the dtype names of traces say about precision.

#ifndef LIB_ACTIVATION_DTYPE_PRECISION_H_
#define LIB_ACTIVATION_DTYPE_PRECISION_H_

#include <optional>

#include "absl/strings/string_view.h"

namespace firstframe {

enum class DtypeClass { kUnknown, kFloat, kInteger, kBool };

// Of a name without "torch.".
DtypeClass ClassOfDtype(absl::string_view name);

// Relative error of one rounding to `dtype` (a name without "torch."), its ulp
// / sqrt(12) averaged over the significand; 0 for integers. Nothing for a name
// that is not known.
std::optional<double> RoundingError(absl::string_view dtype);

// Units in the last place between two values of `dtype`; nothing for types
// without any. For elements of the tensor: min, max, samples.
std::optional<double> UlpsApart(double a, double b, absl::string_view dtype);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_DTYPE_PRECISION_H_
