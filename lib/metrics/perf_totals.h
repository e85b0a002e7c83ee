// Sums and tables that requests and training windows share.

#ifndef LIB_METRICS_PERF_TOTALS_H_
#define LIB_METRICS_PERF_TOTALS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lib/metrics/perf_record.h"

namespace firstframe {

// Sums over sums; peaks weighted by time.
struct PerfRate {
  double flops = 0;
  double seconds = 0;
  double attn_share = 0;
  std::optional<double> tflops;
  std::optional<double> mfu;
  std::optional<double> hfu;
};

// What rates are divided from.
struct RateSum {
  double flops = 0;
  double seconds = 0;
  double attention_flops = 0;
  double peak_flops = 0;    // of all devices over the same seconds
  double peaked_flops = 0;  // flops of records with a peak
  double peaked_hardware = 0;

  // Adds work of `work_flops`, `work_hardware` of them with recomputation, that
  // took `work_s` on devices of `peak_tflops` together.
  void Add(double work_flops, double work_hardware, double work_s,
           double attn_share, std::optional<double> peak_tflops);
  PerfRate Finish() const;
};

struct PerfRank {
  int64_t rank = 0;
  int64_t count = 0;  // requests or steps
  double p50_s = 0;
  double ratio = 1;  // to the median of all ranks
  bool is_straggler = false;
};

// Compares the ranks' medians. `times_s` and `counts` are by rank; a rank
// without times is left out, and one over `straggler_ratio` times the median of
// all medians is a straggler.
std::vector<PerfRank> CompareRanks(
    const std::map<int64_t, std::vector<double>>& times_s,
    const std::map<int64_t, int64_t>& counts, double straggler_ratio);

// Raises `largest` to `peaks`, field by field.
void KeepLarger(const std::optional<MemoryPeaks>& peaks,
                std::optional<MemoryPeaks>& largest);

}  // namespace firstframe

#endif  // LIB_METRICS_PERF_TOTALS_H_
