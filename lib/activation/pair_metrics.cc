#include "lib/activation/pair_metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/activation/dtype_precision.h"

namespace firstframe {
namespace {

// Records hold float32 sums: of FastVideo, reduced in float32 in an order that
// differs between devices. A few units in the last place.
constexpr double kFloatStatFloor = 4 * 0x1p-24;
// Of a sketch: its 64 numbers are float32 sums of many terms.
constexpr double kSketchFloor = 1.3e-7;
// E|x| of a normal variable is sqrt(2 / pi) of its rms.
constexpr double kGaussianRms = 1.2533141373155;

bool IsNumber(const TraceRow& row, TraceValue value) {
  return row.Kind(value) == ValueKind::kNumber;
}

bool BothNumbers(const TraceRow& a, const TraceRow& b, TraceValue value) {
  return IsNumber(a, value) && IsNumber(b, value);
}

double Relative(double a, double b) {
  const double scale = std::max(std::abs(a), std::abs(b));
  return scale > 0 ? std::abs(a - b) / scale : 0;
}

// The root mean square that a row implies, or 0.
double RmsOf(const TraceRow& row, double numel) {
  const double bessel = numel > 1 ? (numel - 1) / numel : 1;
  if (IsNumber(row, kStd) && IsNumber(row, kMean)) {
    const double mean = row.values[kMean], std = row.values[kStd];
    return std::sqrt(mean * mean + std * std * bessel);
  }
  if (IsNumber(row, kAbsMean)) {
    return kGaussianRms * std::abs(double{row.values[kAbsMean]});
  }
  return 0;
}

// The number of elements that sum and mean imply when no shape is given.
double ImpliedNumel(const TraceRow& row) {
  if (!IsNumber(row, kSum) || !IsNumber(row, kMean) || row.values[kMean] == 0) {
    return 0;
  }
  return std::round(double{row.values[kSum]} / row.values[kMean]);
}

double Amax(const TraceRow& row) {
  return std::max(std::abs(double{row.values[kMin]}),
                  std::abs(double{row.values[kMax]}));
}

class Comparison {
 public:
  Comparison(const TraceSide& a, uint32_t row_a, const TraceSide& b,
             uint32_t row_b)
      : a_(a),
        b_(b),
        i_(row_a),
        j_(row_b),
        ra_(a.table.rows[row_a]),
        rb_(b.table.rows[row_b]) {}

  PairMetrics Run() {
    if ((ra_.flags & rb_.flags & TraceRow::kUnread) != 0) {
      m_.bits = BitVerdict::kIdentical;
      m_.has_values = true;
      return m_;
    }
    m_.stat_floor = kFloatStatFloor;
    CompareKinds();
    if (((ra_.flags | rb_.flags) & TraceRow::kHasExtras) != 0) CompareExtras();
    if (m_.numel == 0) {
      m_.numel = std::max(a_.names->numel(ra_.shape), ImpliedNumel(ra_));
    }
    if (m_.hard == 0 && !m_.both_non_finite) CompareNumbers();
    if (m_.bits == BitVerdict::kDifferent && !m_.has_values && m_.hard == 0 &&
        !m_.both_non_finite) {
      m_.hard |= kHardBits;
    }
    m_.differs |= m_.hard != 0 || m_.energy > 0 || ra_.dtype != rb_.dtype ||
                  m_.bits == BitVerdict::kDifferent;
    return m_;
  }

 private:
  void CompareKinds() {
    if (ra_.shape != 0 && rb_.shape != 0 && ra_.shape != rb_.shape) {
      m_.hard |= kHardShape;
    }
    if (ra_.dtype != rb_.dtype) {
      const DtypeClass ca = ClassOfDtype(a_.names->dtype(ra_.dtype));
      const DtypeClass cb = ClassOfDtype(b_.names->dtype(rb_.dtype));
      if (ca != cb && ca != DtypeClass::kUnknown &&
          cb != DtypeClass::kUnknown) {
        m_.hard |= kHardDtype;
      }
    }
    if (((ra_.flags | rb_.flags) & TraceRow::kHasOdd) == 0) return;
    for (int v = 0; v < kNumTraceValues; ++v)
      CompareKind(static_cast<TraceValue>(v));
  }

  void CompareKind(TraceValue value) {
    ValueKind ka = ra_.Kind(value), kb = rb_.Kind(value);
    if (ka == ValueKind::kMissing || kb == ValueKind::kMissing) return;
    // jq writes null for NaN.
    if (ka == ValueKind::kNull) ka = ValueKind::kNan;
    if (kb == ValueKind::kNull) kb = ValueKind::kNan;
    if (ka == ValueKind::kNumber && kb == ValueKind::kNumber) return;
    if (ka == ValueKind::kError || kb == ValueKind::kError) {
      if (ka != kb) m_.hard |= kHardError;
      return;
    }
    if (ka != kb) {
      m_.hard |= kHardNonFinite;
    } else if (value != kStd) {
      // std alone is NaN for a single element.
      m_.both_non_finite = true;
    }
  }

  void CompareExtras() {
    const TraceRecord x = a_.Record(i_), y = b_.Record(j_);
    if (x.numel && y.numel && *x.numel != *y.numel) m_.hard |= kHardShape;
    m_.numel = x.numel.value_or(y.numel.value_or(0));
    for (const auto count :
         {&TraceRecord::nan, &TraceRecord::inf_pos, &TraceRecord::inf_neg}) {
      if (x.*count && y.*count && *(x.*count) != *(y.*count)) {
        m_.hard |= kHardNonFinite;
      }
    }
    if (x.rms && y.rms) {
      rms_ = std::max(*x.rms, *y.rms);
      rms_change_ = Relative(*x.rms, *y.rms);
    }
    ReadPrecision(x);
    ReadPrecision(y);
    CompareHashes(x, y);
    if (x.sketch && y.sketch && (m_.hard & kHardShape) == 0) {
      CompareSketches(x, y);
    }
  }

  void ReadPrecision(const TraceRecord& record) {
    m_.stat_floor = std::max(m_.stat_floor, record.stat_rel.value_or(0));
    const double scale = std::max(rms_, RmsOf(ra_, m_.numel));
    if (record.stat_abs && scale > 0) {
      m_.stat_floor = std::max(m_.stat_floor, *record.stat_abs / scale);
    }
  }

  void CompareHashes(const TraceRecord& x, const TraceRecord& y) {
    if (!x.checksum.empty() && !y.checksum.empty()) {
      m_.bits = x.checksum == y.checksum ? BitVerdict::kIdentical
                                         : BitVerdict::kDifferent;
    }
    if (ra_.dtype != rb_.dtype || !x.h_set || !y.h_set) return;
    const bool same_set = *x.h_set == *y.h_set;
    const bool has_order = x.h_pos && y.h_pos;
    if (same_set && (!has_order || *x.h_pos == *y.h_pos)) {
      m_.bits = has_order ? BitVerdict::kIdentical : BitVerdict::kUnknown;
      return;
    }
    m_.bits = BitVerdict::kDifferent;
    if (same_set) m_.hard |= kHardPermuted;
  }

  void CompareSketches(const TraceRecord& x, const TraceRecord& y) {
    double difference = 0, norm_x = 0, norm_y = 0;
    for (int k = 0; k < kSketchSize; ++k) {
      const double p = (*x.sketch)[k], q = (*y.sketch)[k];
      difference += (p - q) * (p - q);
      norm_x += p * p;
      norm_y += q * q;
    }
    // The exact norm is better than the sketch's, where it is known.
    double norm = std::sqrt(std::max(norm_x, norm_y));
    if (rms_ > 0 && m_.numel > 0) norm = rms_ * std::sqrt(m_.numel);
    const double error = std::sqrt(difference);
    m_.energy = norm > 0 ? error / norm : 0;
    if (m_.energy < kSketchFloor) m_.energy = 0;
    m_.has_values = true;
  }

  void CompareNumbers() {
    for (int v = 0; v < kNumTraceValues; ++v) {
      const TraceValue value = static_cast<TraceValue>(v);
      m_.differs |=
          BothNumbers(ra_, rb_, value) && ra_.values[v] != rb_.values[v];
    }
    if (m_.bits == BitVerdict::kIdentical) {
      m_.has_values = true;
      m_.energy = m_.energy < 0 ? m_.energy : 0;
      return;
    }
    const double rms_a = RmsOf(ra_, m_.numel), rms_b = RmsOf(rb_, m_.numel);
    double rms = std::max(rms_a, rms_b);
    if (rms_ > 0) rms = rms_;
    m_.rms = rms;
    if (BothNumbers(ra_, rb_, kAbsMean)) {
      m_.has_values = true;
      m_.abs_mean_change = Relative(ra_.values[kAbsMean], rb_.values[kAbsMean]);
      Take(m_.abs_mean_change, 1);
    }
    if (BothNumbers(ra_, rb_, kStd)) {
      m_.has_values = true;
      const double std = std::max(ra_.values[kStd], rb_.values[kStd]);
      // A spread far below the mean is a difference of large numbers.
      Take(Relative(ra_.values[kStd], rb_.values[kStd]),
           std > 0 ? std::max(1.0, rms / std) : 1);
    }
    if (rms_change_ >= 0) {
      m_.has_values = true;
      Take(rms_change_, 1);
    }
    CompareMeans(rms);
    CompareExtremes();
    m_.negligible =
        rms == 0 && m_.has_values && Amax(ra_) == 0 && Amax(rb_) == 0;
    if (m_.negligible) m_.coherent = 0;
  }

  void CompareMeans(double rms) {
    const double n = m_.numel;
    double change = -1;
    if (BothNumbers(ra_, rb_, kMean)) {
      change = std::abs(double{ra_.values[kMean]} - rb_.values[kMean]);
    } else if (BothNumbers(ra_, rb_, kSum) && n > 0) {
      change = std::abs(double{ra_.values[kSum]} - rb_.values[kSum]) / n;
    }
    if (change >= 0) {
      m_.has_values = true;
      if (rms > 0) Take(change / rms, 1);
      if (rms == 0 && change > 0) Take(1, 1);
    } else if (BothNumbers(ra_, rb_, kSum)) {
      m_.has_values = true;
    }
    if (n > 0 && rms > 0) {
      const double sqrt_n = std::sqrt(n);
      m_.projected = 0;
      if (change >= 0) m_.projected = change * sqrt_n / rms;
      if (BothNumbers(ra_, rb_, kAbsMean)) {
        m_.projected = std::max(
            m_.projected,
            std::abs(double{ra_.values[kAbsMean]} - rb_.values[kAbsMean]) *
                sqrt_n / rms);
      }
    }
  }

  void CompareExtremes() {
    if (!BothNumbers(ra_, rb_, kMin) || !BothNumbers(ra_, rb_, kMax)) return;
    m_.has_values = true;
    m_.amax_change = Relative(Amax(ra_), Amax(rb_));
  }

  // Adds a relative change whose own precision is `scale` times the usual.
  void Take(double change, double scale) {
    if (change > m_.stat_floor * scale) {
      m_.coherent = std::max(m_.coherent, change / scale);
    }
  }

  const TraceSide& a_;
  const TraceSide& b_;
  const uint32_t i_, j_;
  const TraceRow& ra_;
  const TraceRow& rb_;
  double rms_ = 0;  // of the records that give it
  double rms_change_ = -1;
  PairMetrics m_;
};

std::string ShapeOf(const TraceSide& side, uint32_t row) {
  const uint32_t shape = side.table.rows[row].shape;
  if (shape == 0) return absl::StrCat(side.Numel(row), " elements");
  return ShapeToString(side.names->shape(shape));
}

std::string ValuesOf(const TraceSide& side, uint32_t row) {
  const TraceRow& r = side.table.rows[row];
  std::vector<std::string> words;
  for (int v = 0; v < kNumTraceValues; ++v) {
    const TraceValue value = static_cast<TraceValue>(v);
    const char* kind = nullptr;
    switch (r.Kind(value)) {
      case ValueKind::kNan:
        kind = "NaN";
        break;
      case ValueKind::kNull:
        kind = "null";
        break;
      case ValueKind::kPositiveInfinity:
        kind = "Infinity";
        break;
      case ValueKind::kNegativeInfinity:
        kind = "-Infinity";
        break;
      case ValueKind::kError:
        kind = "an error";
        break;
      default:
        continue;
    }
    words.push_back(absl::StrCat(kTraceValueNames[v], " ", kind));
  }
  return words.empty() ? "finite values" : absl::StrJoin(words, ", ");
}

}  // namespace

PairMetrics ComparePair(const TraceSide& a, uint32_t row_a, const TraceSide& b,
                        uint32_t row_b) {
  return Comparison(a, row_a, b, row_b).Run();
}

std::string DescribeHard(const PairMetrics& m, const TraceSide& a,
                         uint32_t row_a, const TraceSide& b, uint32_t row_b) {
  std::vector<std::string> reasons;
  if (m.hard & kHardShape) {
    reasons.push_back(absl::StrCat("shape ", ShapeOf(a, row_a), " against ",
                                   ShapeOf(b, row_b)));
  }
  if (m.hard & kHardDtype) {
    reasons.push_back(
        absl::StrCat("dtype ", a.names->dtype(a.table.rows[row_a].dtype),
                     " against ", b.names->dtype(b.table.rows[row_b].dtype)));
  }
  if (m.hard & (kHardError | kHardNonFinite)) {
    std::string left = ValuesOf(a, row_a), right = ValuesOf(b, row_b);
    if (left == right) left = right = "other counts of NaN or infinities";
    reasons.push_back(absl::StrCat(left, " against ", right));
  }
  if (m.hard & kHardPermuted) {
    reasons.push_back(
        "the same values in another order: a permutation, layout or sharding");
  }
  if (m.hard & kHardBits) {
    reasons.push_back("other bits, and no statistics to say how far");
  }
  return absl::StrJoin(reasons, "; ");
}

}  // namespace firstframe
