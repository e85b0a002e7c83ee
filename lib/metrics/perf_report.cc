#include "lib/metrics/perf_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/percentile.h"
#include "lib/metrics/exact_sum.h"

namespace firstframe {
namespace {

void KeepLarger(const std::optional<MemoryPeaks>& peaks,
                std::optional<MemoryPeaks>& largest) {
  if (!peaks) return;
  if (!largest) largest.emplace();
  largest->alloc_bytes = std::max(largest->alloc_bytes, peaks->alloc_bytes);
  largest->reserved_bytes =
      std::max(largest->reserved_bytes, peaks->reserved_bytes);
}

// The quantile function of a window is known at 50 and 95 % alone; between
// them, and beyond, it is taken as straight.
void AppendWindowSteps(const TrainWindowRecord& window,
                       std::vector<double>& steps) {
  const double slope = (window.step_s_p95 - window.step_s_p50) / 0.45;
  const int64_t n = std::clamp<int64_t>(window.steps, 0, 100000);
  for (int64_t i = 0; i < n; ++i) {
    const double quantile =
        n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0.5;
    steps.push_back(
        std::max(0.0, window.step_s_p50 + slope * (quantile - 0.5)));
  }
}

struct PooledSteps {
  double p50 = 0;
  double p95 = 0;
  bool is_estimate = false;
};

PooledSteps PoolSteps(const std::vector<const TrainWindowRecord*>& windows) {
  PooledSteps pooled;
  if (windows.size() == 1) {
    return {windows[0]->step_s_p50, windows[0]->step_s_p95, false};
  }
  std::vector<double> steps;
  // A pooled percentile lies between the windows' own; where those agree at the
  // two decimals that are shown, so does it.
  double low[2] = {HUGE_VAL, HUGE_VAL};
  double high[2] = {0, 0};
  for (const TrainWindowRecord* window : windows) {
    AppendWindowSteps(*window, steps);
    const double values[2] = {window->step_s_p50, window->step_s_p95};
    for (int i = 0; i < 2; ++i) {
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
  }
  if (steps.empty()) return pooled;
  std::sort(steps.begin(), steps.end());
  pooled.p50 = std::clamp(PercentileOfSorted(steps, 50), low[0], high[0]);
  pooled.p95 = std::clamp(PercentileOfSorted(steps, 95), low[1], high[1]);
  for (int i = 0; i < 2; ++i) {
    pooled.is_estimate |= std::round(low[i] * 100) != std::round(high[i] * 100);
  }
  return pooled;
}

double WindowSeconds(const TrainWindowRecord& window) {
  return window.throughput
             ? window.throughput->wall_s
             : window.step_s_p50 * static_cast<double>(window.steps);
}

}  // namespace

Distribution DescribeValues(std::vector<double> values) {
  Distribution d;
  d.count = static_cast<int64_t>(values.size());
  if (values.empty()) return d;
  d.mean = ExactSum(values) / static_cast<double>(values.size());
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  d.min = *min;
  d.max = *max;
  const std::vector<double> percentiles =
      Percentiles(absl::MakeSpan(values), {50, 95, 99});
  d.p50 = percentiles[0];
  d.p95 = percentiles[1];
  d.p99 = percentiles[2];
  return d;
}

PerfReport::Rate PerfReport::RateSum::Finish() const {
  Rate rate;
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

void PerfReport::Add(const RequestRecord& record) {
  ++num_requests_;
  RankRequests& rank = ranks_[record.rank];
  const bool is_warmup = record.warmup && !options_.include_warmup;
  if (is_warmup) {
    ++rank.warmup;
    return;
  }
  if (rank.seen++ < options_.skip) {
    ++num_skipped_;
    return;
  }
  rank.e2e_s.push_back(record.e2e_s);
  double transformer_s = 0;
  double vae_s = 0;
  int64_t transformer_calls = 0;
  for (const auto& [name, stage] : record.stages) {
    StageValues& values = stages_[name];
    values.min_ms = values.calls == 0 ? stage.min_ms
                                      : std::min(values.min_ms, stage.min_ms);
    values.max_ms = std::max(values.max_ms, stage.max_ms);
    values.calls += stage.count;
    values.total_ms += stage.total_ms;
    values.mean_ms.push_back(stage.mean_ms);
    values.request_ms.push_back(stage.total_ms);
    if (absl::StartsWith(name, "transformer")) {
      transformer_s += stage.total_ms / 1e3;
      transformer_calls += stage.count;
    } else if (absl::StartsWith(name, "vae")) {
      vae_s += stage.total_ms / 1e3;
    }
  }
  rank.transformer_ms += transformer_s * 1e3;
  rank.transformer_calls += transformer_calls;
  if (record.dit) {
    // The record's own rate says over which time its FLOPs ran.
    const double flops =
        record.dit->flops_per_fwd * static_cast<double>(transformer_calls);
    const double seconds = record.dit->tflops > 0
                               ? flops / record.dit->tflops / 1e12
                               : transformer_s;
    dit_.flops += flops;
    dit_.seconds += seconds;
    dit_.attention_flops += flops * record.dit->attn_share;
    if (record.dit->peak_tflops) {
      dit_.peaked_flops += flops;
      dit_.peaked_hardware += flops;
      dit_.peak_flops += *record.dit->peak_tflops * 1e12 * seconds;
    }
  }
  if (record.vae) {
    const double flops =
        record.vae->flops_per_call * static_cast<double>(record.vae->calls);
    vae_.flops += flops;
    vae_.seconds += vae_s;
    if (record.vae->peak_tflops) {
      vae_.peaked_flops += flops;
      vae_.peaked_hardware += flops;
      vae_.peak_flops += *record.vae->peak_tflops * 1e12 * vae_s;
    }
  }
  KeepLarger(record.peaks, request_peaks_);
  if (record.peaks) {
    request_alloc_bytes_.push_back(
        static_cast<double>(record.peaks->alloc_bytes));
  }
  if (options_.keep_requests && kept_requests_.size() < kMaxKept) {
    kept_requests_.push_back(record);
  }
}

void PerfReport::Add(const TrainWindowRecord& record) {
  windows_.push_back(record);
}

std::vector<PerfReport::Rank> PerfReport::RankTable(
    const std::map<int64_t, std::vector<double>>& values,
    const std::map<int64_t, int64_t>& counts) const {
  std::vector<Rank> ranks;
  std::vector<double> medians;
  for (const auto& [rank, times] : values) {
    if (times.empty()) continue;
    ranks.push_back({.rank = rank,
                     .count = counts.at(rank),
                     .p50_s = Percentile(times, 50)});
    medians.push_back(ranks.back().p50_s);
  }
  if (ranks.size() < 2) return ranks;
  const double middle = Percentile(medians, 50);
  for (Rank& rank : ranks) {
    rank.ratio = middle > 0 ? rank.p50_s / middle : 1;
    rank.is_straggler = rank.ratio > options_.straggler_ratio;
  }
  return ranks;
}

PerfReport::Requests PerfReport::SummarizeRequests() const {
  Requests result;
  result.total = num_requests_;
  result.skipped = num_skipped_;
  std::vector<double> all;
  std::map<int64_t, std::vector<double>> by_rank;
  std::map<int64_t, int64_t> counts;
  for (const auto& [rank, values] : ranks_) {
    result.warmup += values.warmup;
    all.insert(all.end(), values.e2e_s.begin(), values.e2e_s.end());
    by_rank[rank] = values.e2e_s;
    counts[rank] = static_cast<int64_t>(values.e2e_s.size());
  }
  result.total_s = ExactSum(all);
  if (result.total_s > 0) {
    result.per_hour = static_cast<double>(all.size()) / result.total_s * 3600.0;
  }
  result.ranks = RankTable(by_rank, counts);
  if (!by_rank.empty()) {
    result.changes = FindChangePoints(by_rank.begin()->second);
  }
  result.e2e_s = DescribeValues(std::move(all));
  for (const auto& [name, values] : stages_) {
    Stage stage;
    stage.name = name;
    stage.requests = static_cast<int64_t>(values.mean_ms.size());
    stage.calls = values.calls;
    stage.total_s = values.total_ms / 1e3;
    if (result.total_s > 0) stage.share = stage.total_s / result.total_s;
    stage.call_ms = DescribeValues(values.mean_ms);
    if (values.calls > 0) {
      stage.call_ms.mean = values.total_ms / static_cast<double>(values.calls);
    }
    stage.call_ms.min = values.min_ms;
    stage.call_ms.max = values.max_ms;
    result.stages.push_back(std::move(stage));
  }
  result.dit = dit_.Finish();
  result.vae = vae_.Finish();
  result.peaks = request_peaks_;
  return result;
}

PerfReport::Training PerfReport::SummarizeTraining() const {
  Training result;
  std::vector<const TrainWindowRecord*> all;
  std::map<int64_t, std::vector<double>> by_rank;
  std::map<int64_t, int64_t> counts;
  std::map<std::string, double> phase_sums;
  std::vector<std::string> phase_order;
  RateSum dit;
  double samples = 0;
  for (const TrainWindowRecord& window : windows_) {
    all.push_back(&window);
    const double steps = static_cast<double>(window.steps);
    result.steps += window.steps;
    result.warmup += window.warmup_excluded;
    result.total_s += WindowSeconds(window);
    by_rank[window.rank].push_back(window.step_s_p50);
    counts[window.rank] += window.steps;
    for (const auto& [name, seconds] : window.phases_s) {
      if (phase_sums.emplace(name, 0).second) phase_order.push_back(name);
      phase_sums[name] += seconds * steps;
    }
    KeepLarger(window.peaks, result.peaks);
    if (window.eta_s) result.eta_s = window.eta_s;
    if (!window.throughput) continue;
    samples += window.throughput->samples * steps *
               static_cast<double>(window.throughput->dp);
    if (!window.throughput->priced) continue;
    const WindowThroughput::Priced& priced = *window.throughput->priced;
    const double flops = priced.tflops * 1e12 * priced.priced_s;
    const double hardware = priced.hw_tflops * 1e12 * priced.priced_s;
    dit.flops += flops;
    dit.seconds += priced.priced_s;
    dit.attention_flops += flops * priced.attn_share;
    dit.hardware_flops += hardware;
    if (priced.peak_tflops) {
      dit.peaked_flops += flops;
      dit.peaked_hardware += hardware;
      dit.peak_flops += *priced.peak_tflops * 1e12 * priced.priced_s;
    }
  }
  result.windows = static_cast<int64_t>(windows_.size());
  const PooledSteps pooled = PoolSteps(all);
  result.step_s_p50 = pooled.p50;
  result.step_s_p95 = pooled.p95;
  result.is_estimate = pooled.is_estimate;
  for (const std::string& name : phase_order) {
    result.phases_s.emplace_back(
        name, result.steps > 0
                  ? phase_sums[name] / static_cast<double>(result.steps)
                  : 0);
  }
  if (result.total_s > 0) result.samples_per_s = samples / result.total_s;
  result.dit = dit.Finish();
  result.ranks = RankTable(by_rank, counts);
  if (!by_rank.empty()) {
    result.changes = FindChangePoints(by_rank.begin()->second);
  }
  return result;
}

std::vector<std::string> PerfReport::SummaryLines() const {
  std::vector<std::string> lines;
  for (const auto& [rank, values] : ranks_) {
    RequestSummaryInput input;
    input.e2e_s = values.e2e_s;
    input.warmup_excluded = values.warmup;
    input.transformer_ms = values.transformer_ms;
    input.transformer_calls = values.transformer_calls;
    const auto line =
        FormatRequestSummary(absl::StrCat("[Perf][rank", rank, "]"), input);
    if (line) lines.push_back(*line);
  }
  std::map<int64_t, std::vector<const TrainWindowRecord*>> by_rank;
  for (const TrainWindowRecord& window : windows_) {
    by_rank[window.rank].push_back(&window);
  }
  for (const auto& [rank, windows] : by_rank) {
    int64_t steps = 0;
    double total_s = 0;
    for (const TrainWindowRecord* window : windows) {
      steps += window->steps;
      total_s += WindowSeconds(*window);
    }
    const PooledSteps pooled = PoolSteps(windows);
    const auto line =
        FormatTrainSummary(absl::StrCat("[Perf][rank", rank, "]"), steps,
                           pooled.p50, pooled.p95, total_s, pooled.is_estimate);
    if (line) lines.push_back(*line);
  }
  return lines;
}

std::map<std::string, std::vector<double>> PerfReport::Samples() const {
  std::map<std::string, std::vector<double>> samples;
  for (const auto& [rank, values] : ranks_) {
    std::vector<double>& all = samples["e2e_s"];
    all.insert(all.end(), values.e2e_s.begin(), values.e2e_s.end());
  }
  for (const auto& [name, values] : stages_) {
    samples[absl::StrCat("stages.", name, ".total_ms")] = values.request_ms;
    samples[absl::StrCat("stages.", name, ".mean_ms")] = values.mean_ms;
  }
  if (!request_alloc_bytes_.empty()) {
    samples["peak_alloc_bytes"] = request_alloc_bytes_;
  }
  for (const TrainWindowRecord& window : windows_) {
    samples["step_s_p50"].push_back(window.step_s_p50);
    samples["step_s_p95"].push_back(window.step_s_p95);
    for (const auto& [name, seconds] : window.phases_s) {
      samples[absl::StrCat("phases_s.", name)].push_back(seconds);
    }
    if (window.peaks) {
      samples["train_peak_alloc_bytes"].push_back(
          static_cast<double>(window.peaks->alloc_bytes));
    }
  }
  return samples;
}

}  // namespace firstframe
