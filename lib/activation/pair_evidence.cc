#include "lib/activation/pair_evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/activation/dtype_precision.h"

namespace firstframe {
namespace {

// 95 % of estimates from 64 buckets lie within these factors of the truth
// (the norm of 64 independent normal sums has a standard deviation of 9 %).
constexpr double kLow = 0.85, kHigh = 1.21;

double NormOf(const TraceRecord& record, double numel) {
  if (record.rms && numel > 0) return *record.rms * std::sqrt(numel);
  double squares = 0;
  for (const float bucket : *record.sketch) squares += bucket * bucket;
  return std::sqrt(squares);
}

void ReadSketches(const TraceRecord& a, const TraceRecord& b, double numel,
                  PairEvidence* out) {
  double squares = 0;
  for (int k = 0; k < kSketchSize; ++k) {
    const double d = double{(*a.sketch)[k]} - (*b.sketch)[k];
    squares += d * d;
  }
  const double norm_a = NormOf(a, numel), norm_b = NormOf(b, numel);
  if (!(norm_a > 0) || !(norm_b > 0)) return;
  const double error = std::sqrt(squares) / norm_a;
  out->relative_error = {error, kLow * error, kHigh * error};
  if (error > 0) out->sqnr_db = -20 * std::log10(error);
  out->rel_diff = squares / (norm_a * norm_a + norm_b * norm_b);
  const double gap = norm_a - norm_b;
  out->one_minus_cosine =
      std::clamp((squares - gap * gap) / (2 * norm_a * norm_b), 0.0, 2.0);
}

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void ReadSamples(const TraceRecord& a, const TraceRecord& b,
                 absl::string_view dtype, PairEvidence* out) {
  std::vector<double> differences, sizes;
  for (size_t i = 0; i < a.samples.size(); ++i) {
    const double x = a.samples[i], y = b.samples[i];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    differences.push_back(std::abs(x - y));
    sizes.push_back(std::abs(x));
    out->samples_equal += x == y;
    out->samples_of_other_sign += x * y < 0;
    const auto ulps = UlpsApart(x, y, dtype);
    out->samples_within_ulp += x == y || (ulps && *ulps <= 1);
  }
  out->samples = static_cast<int>(differences.size());
  if (differences.empty()) return;
  const double size = MedianOf(std::move(sizes));
  if (size > 0) out->sample_median = MedianOf(std::move(differences)) / size;
}

void ReadExponents(const TraceRecord& a, const TraceRecord& b,
                   PairEvidence* out) {
  std::map<int, int64_t> change;
  int64_t total = 0, moved = 0;
  for (const auto& [bin, count] : a.exponents) {
    change[bin] += count;
    total += count;
  }
  for (const auto& [bin, count] : b.exponents) change[bin] -= count;
  for (const auto& [bin, count] : change) moved += std::abs(count);
  if (total > 0) out->exponents_moved = 0.5 * moved / total;
}

}  // namespace

PairEvidence EvidenceOf(const TraceSide& a, uint32_t row_a, const TraceSide& b,
                        uint32_t row_b) {
  PairEvidence out;
  const TraceRow& left = a.table.rows[row_a];
  const TraceRow& right = b.table.rows[row_b];
  if (((left.flags | right.flags) & TraceRow::kHasExtras) == 0) return out;
  const TraceRecord x = a.Record(row_a), y = b.Record(row_b);
  const double numel = x.numel.value_or(a.Numel(row_a));
  const bool same_shape = numel == y.numel.value_or(b.Numel(row_b));
  if (same_shape && x.sketch && y.sketch) ReadSketches(x, y, numel, &out);
  if (same_shape && x.samples.size() == y.samples.size()) {
    // One unit of the coarser side.
    const std::string& dtype_a = a.names->dtype(left.dtype);
    const std::string& dtype_b = b.names->dtype(right.dtype);
    const bool left_is_coarser = RoundingError(dtype_a).value_or(0) >=
                                 RoundingError(dtype_b).value_or(0);
    ReadSamples(x, y, left_is_coarser ? dtype_a : dtype_b, &out);
  }
  if (!x.exponents.empty() && !y.exponents.empty()) ReadExponents(x, y, &out);
  if (numel > 0 && x.zero) out.zeros_left = *x.zero / numel;
  if (numel > 0 && y.zero) out.zeros_right = *y.zero / numel;
  return out;
}

std::string ErrorShare(double value) {
  if (value >= 1e-4) return absl::StrFormat("%.3g %%", 100 * value);
  return absl::StrFormat("%.2g", value);
}

std::string DescribeEvidence(const PairEvidence& e) {
  std::vector<std::string> parts;
  if (e.relative_error && e.relative_error->estimate > 0) {
    parts.push_back(absl::StrCat("95 % interval ",
                                 ErrorShare(e.relative_error->low), " to ",
                                 ErrorShare(e.relative_error->high)));
    parts.push_back(absl::StrFormat("SQNR %.1f dB", e.sqnr_db.value_or(0)));
    parts.push_back(
        absl::StrFormat("cosine 1 - %.2g", e.one_minus_cosine.value_or(0)));
  }
  if (e.samples > 0) {
    if (e.samples_of_other_sign > 0) {
      parts.push_back(absl::StrCat(e.samples_of_other_sign, " of ", e.samples,
                                   " samples of the other sign"));
    } else if (e.samples_equal < e.samples &&
               e.samples_within_ulp == e.samples) {
      parts.push_back("all samples within one unit in the last place");
    }
  }
  if (e.exponents_moved && *e.exponents_moved >= 0.01) {
    parts.push_back(absl::StrCat(ErrorShare(*e.exponents_moved),
                                 " of the elements in another power of two"));
  }
  if (e.zeros_left && e.zeros_right &&
      std::abs(*e.zeros_left - *e.zeros_right) >= 0.001) {
    parts.push_back(absl::StrCat("zeros ", ErrorShare(*e.zeros_left),
                                 " against ", ErrorShare(*e.zeros_right)));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace firstframe
