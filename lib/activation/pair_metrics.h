// How far two records of the same tensor are apart, from summaries alone.
//
// Formulas: docs/trace_diff.md. Relative error means ||a - b|| / ||a||.

#ifndef LIB_ACTIVATION_PAIR_METRICS_H_
#define LIB_ACTIVATION_PAIR_METRICS_H_

#include <cstdint>
#include <string>

#include "lib/activation/merge_rows.h"

namespace firstframe {

// Reasons that need no tolerance. Bits of PairMetrics::hard.
enum HardDifference : uint8_t {
  kHardShape = 1,      // shapes differ
  kHardDtype = 2,      // a float against an integer or bool
  kHardError = 4,      // an error string against a number
  kHardNonFinite = 8,  // NaN or infinities on one side, or other counts
  kHardPermuted = 16,  // the same values in another order
  kHardBits = 32,      // other bits, and no number to say how far
};

enum class BitVerdict : uint8_t {
  kUnknown,    // no hashes, or of different dtypes
  kIdentical,  // equal hashes, or equal text
  kDifferent,
};

struct PairMetrics {
  // Largest relative change of abs_mean, std and mean / rms, less what the
  // statistics' own precision explains. Errors that share a sign or a scale
  // move it by about their size; independent ones by less (1 / sqrt(n)).
  double coherent = 0;
  // Relative error estimated from the sketches; negative without them.
  double energy = -1;
  // Largest of |d sum| / (rms sqrt(n)) and |d abs_mean| sqrt(n) / rms: the
  // relative error if errors are independent; an upper bound otherwise.
  // Negative when the number of elements is unknown.
  double projected = -1;
  double abs_mean_change = 0;  // relative
  double amax_change = 0;      // relative, of the largest magnitude
  double numel = 0;
  double rms = 0;  // root mean square, the larger side's; 0: not known
  // Relative precision of the statistics themselves.
  double stat_floor = 0;
  uint8_t hard = 0;
  BitVerdict bits = BitVerdict::kUnknown;
  bool both_non_finite = false;
  bool negligible = false;  // nothing but zeros on both sides
  bool differs = false;  // anything at all: a number, a hash, a kind, the dtype
  bool has_values = false;  // anything at all was compared
};

PairMetrics ComparePair(const TraceSide& a, uint32_t row_a, const TraceSide& b,
                        uint32_t row_b);

// Says what `hard` holds: "shape [1, 2] against [1, 3]".
std::string DescribeHard(const PairMetrics& metrics, const TraceSide& a,
                         uint32_t row_a, const TraceSide& b, uint32_t row_b);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_PAIR_METRICS_H_
