// Compares two runs by their traces, with the noise of each.

#ifndef LIB_TRACE_TRACE_DIFF_H_
#define LIB_TRACE_TRACE_DIFF_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "lib/trace/trace_summary.h"

namespace firstframe {

enum class DiffVerdict {
  kSame,    // within the noise, or within the threshold
  kFaster,  // B takes less
  kSlower,  // B takes more
  kOnlyInA,
  kOnlyInB,
  kUnknown,  // one sample a side: no noise to hold the change against
};

// One region's or kernel's time in both traces.
struct DiffRow {
  std::string what;  // "region" (median host time), "region_gpu" (busy time a
                     // entry), "kernel" (mean time)
  std::string name;
  double a_ns = 0;
  double b_ns = 0;
  int64_t a_count = 0;
  int64_t b_count = 0;
  // Half the width of the interval that B - A lies in, were the runs the same,
  // in 99.7 % of cases; negative: not known.
  double noise_ns = -1;
  DiffVerdict verdict = DiffVerdict::kSame;

  double change() const { return a_ns == 0 ? 0 : (b_ns - a_ns) / a_ns; }
};

struct TraceDiffOptions {
  // Changes of a smaller part of A count as the same.
  double threshold = 0.05;
  // Kernels that take a smaller part of either trace are left out.
  double min_share = 0.001;
};

// Medians are compared with three standard errors of a median, estimated from
// the median absolute deviation (1.4826 MAD is sigma of a normal distribution;
// a median's standard error is 1.2533 sigma / sqrt(n)); means with three
// standard errors of a mean. Regions come first, then kernels, each by the size
// of their change in total time.
std::vector<DiffRow> DiffTraces(const TraceSummary& a, const TraceSummary& b,
                                const TraceDiffOptions& options);

// Returns whether any row is faster, slower or in one trace alone.
bool Differs(const std::vector<DiffRow>& rows);

const char* DiffVerdictName(DiffVerdict verdict);

void WriteDiffText(const std::vector<DiffRow>& rows, std::ostream& out);
// One document of schema "firstframe.trace_report_diff".
std::string DiffJson(const TraceSummary& a, const TraceSummary& b,
                     const std::vector<DiffRow>& rows);

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_DIFF_H_
