#include "lib/metrics/perf_totals.h"

#include <algorithm>

#include "lib/base/percentile.h"

namespace firstframe {

void RateSum::Add(double work_flops, double work_hardware, double work_s,
                  double attn_share, std::optional<double> peak_tflops) {
  flops += work_flops;
  seconds += work_s;
  attention_flops += work_flops * attn_share;
  if (!peak_tflops) return;
  peaked_flops += work_flops;
  peaked_hardware += work_hardware;
  peak_flops += *peak_tflops * 1e12 * work_s;
}

PerfRate RateSum::Finish() const {
  PerfRate rate;
  rate.flops = flops;
  rate.seconds = seconds;
  if (flops > 0) rate.attn_share = attention_flops / flops;
  if (seconds > 0) rate.tflops = flops / seconds / 1e12;
  if (peak_flops > 0) {
    rate.mfu = peaked_flops / peak_flops;
    rate.hfu = peaked_hardware / peak_flops;
  }
  return rate;
}

std::vector<PerfRank> CompareRanks(
    const std::map<int64_t, std::vector<double>>& times_s,
    const std::map<int64_t, int64_t>& counts, double straggler_ratio) {
  std::vector<PerfRank> ranks;
  std::vector<double> medians;
  for (const auto& [rank, times] : times_s) {
    if (times.empty()) continue;
    ranks.push_back({.rank = rank,
                     .count = counts.at(rank),
                     .p50_s = Percentile(times, 50)});
    medians.push_back(ranks.back().p50_s);
  }
  if (ranks.size() < 2) return ranks;
  const double middle = Percentile(medians, 50);
  for (PerfRank& rank : ranks) {
    rank.ratio = middle > 0 ? rank.p50_s / middle : 1;
    rank.is_straggler = rank.ratio > straggler_ratio;
  }
  return ranks;
}

void KeepLarger(const std::optional<MemoryPeaks>& peaks,
                std::optional<MemoryPeaks>& largest) {
  if (!peaks) return;
  if (!largest) largest.emplace();
  largest->alloc_bytes = std::max(largest->alloc_bytes, peaks->alloc_bytes);
  largest->reserved_bytes =
      std::max(largest->reserved_bytes, peaks->reserved_bytes);
}

}  // namespace firstframe
