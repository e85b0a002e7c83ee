#include "lib/activation/dtype_precision.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"

namespace firstframe {
namespace {

struct DtypeRow {
  absl::string_view name;
  double rounding;  // relative, root mean square
  int mantissa;     // bits behind the point
};
// ulp / sqrt(12), averaged over significands in [1, 2).
constexpr DtypeRow kDtypes[] = {
    {"float64", 4.5e-17, 52},      {"float32", 2.4e-8, 23},
    {"float16", 2.0e-4, 10},       {"bfloat16", 1.6e-3, 7},
    {"float8_e4m3fn", 2.6e-2, 3},  {"float8_e4m3fnuz", 2.6e-2, 3},
    {"float8_e5m2", 5e-2, 2},      {"float8_e5m2fnuz", 5e-2, 2},
    {"float8_e8m0fnu", 2.5e-1, 0}, {"complex64", 2.4e-8, 23},
    {"complex128", 4.5e-17, 52},
};

const DtypeRow* FindDtype(absl::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

DtypeClass ClassOfDtype(absl::string_view name) {
  if (name.empty()) return DtypeClass::kUnknown;
  if (FindDtype(name) != nullptr || absl::StartsWith(name, "float") ||
      absl::StartsWith(name, "bfloat")) {
    return DtypeClass::kFloat;
  }
  if (name == "bool") return DtypeClass::kBool;
  return absl::StrContains(name, "int") ? DtypeClass::kInteger
                                        : DtypeClass::kUnknown;
}

std::optional<double> RoundingError(absl::string_view dtype) {
  if (const DtypeRow* row = FindDtype(dtype)) return row->rounding;
  const DtypeClass kind = ClassOfDtype(dtype);
  if (kind == DtypeClass::kInteger || kind == DtypeClass::kBool) return 0.0;
  return std::nullopt;
}

std::optional<double> UlpsApart(double a, double b, absl::string_view dtype) {
  const DtypeRow* const row = FindDtype(dtype);
  const double scale = std::max(std::abs(a), std::abs(b));
  if (row == nullptr || !std::isfinite(scale) || scale == 0) {
    return std::nullopt;
  }
  // Records are float32: a float64 tensor's extremes have 23 bits there.
  const int mantissa = std::min(row->mantissa, 23);
  return std::abs(a - b) / std::ldexp(1.0, std::ilogb(scale) - mantissa);
}

}  // namespace firstframe
