// All that two records of one tensor tell about their distance, for a reader.
// Slower than ComparePair: it reads both records in full.

#ifndef LIB_ACTIVATION_PAIR_EVIDENCE_H_
#define LIB_ACTIVATION_PAIR_EVIDENCE_H_

#include <optional>
#include <string>

#include "lib/activation/merge_rows.h"

namespace firstframe {

struct PairEvidence {
  // ||a - b|| / ||a|| from the sketches, with its 95 % interval (64 buckets).
  struct Error {
    double estimate = 0, low = 0, high = 0;
  };
  std::optional<Error> relative_error;
  // Of the same estimate, in the words of other tools. The cosine follows from
  // the exact norms and the difference, never from the sketches' own product:
  // docs/trace_diff.md.
  std::optional<double> sqnr_db;   // nothing for no error at all
  std::optional<double> rel_diff;  // ||a - b||^2 / (||a||^2 + ||b||^2)
  std::optional<double> one_minus_cosine;

  // From the samples at equal indices, of which there are `samples`.
  int samples = 0;
  int samples_equal = 0;
  int samples_within_ulp = 0;  // at most one unit in the last place apart
  int samples_of_other_sign = 0;
  std::optional<double> sample_median;  // median |a - b| over median |a|

  // Share of the elements that changed their power of two.
  std::optional<double> exponents_moved;
  std::optional<double> zeros_left, zeros_right;
};

PairEvidence EvidenceOf(const TraceSide& a, uint32_t row_a, const TraceSide& b,
                        uint32_t row_b);

// "95 % interval 8.2 % to 11.6 %; SQNR 20.4 dB; cosine 1 - 0.0046": what there
// is of it; empty when there is nothing.
std::string DescribeEvidence(const PairEvidence& evidence);

// Relative errors in percent down to a hundredth of one: "9.6 %", "3.1e-06".
std::string ErrorShare(double value);

}  // namespace firstframe

#endif  // LIB_ACTIVATION_PAIR_EVIDENCE_H_
