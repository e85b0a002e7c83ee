#include "lib/metrics/training_totals.h"

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

double SecondsOf(const WindowSteps& window) {
  return window.total_s ? *window.total_s
                        : window.p50_s * static_cast<double>(window.steps);
}

}  // namespace

// Records name their phases in one order: the place of the last record's is
// tried first.
TrainingTotals::Phase& TrainingTotals::FindPhase(size_t expected,
                                                 absl::string_view name) {
  if (expected < phases_.size() && phases_[expected].name == name) {
    return phases_[expected];
  }
  for (Phase& phase : phases_) {
    if (phase.name == name) return phase;
  }
  phases_.push_back({.name = std::string(name)});
  return phases_.back();
}

void TrainingTotals::AddThroughput(const WindowThroughput& throughput,
                                   double steps) {
  samples_ += throughput.samples * steps * static_cast<double>(throughput.dp);
  if (!throughput.priced) return;
  const PricedThroughput& priced = *throughput.priced;
  dit_.Add(priced.tflops * 1e12 * priced.priced_s,
           priced.hw_tflops * 1e12 * priced.priced_s, priced.priced_s,
           priced.attn_share, priced.peak_tflops);
}

void TrainingTotals::Add(const TrainWindowRecord& record) {
  ++num_windows_;
  const double steps = static_cast<double>(record.steps);
  WindowSteps window = {.steps = record.steps,
                        .p50_s = record.step_s_p50,
                        .p95_s = record.step_s_p95};
  if (record.throughput && record.throughput->wall_s > 0) {
    window.total_s = record.throughput->wall_s;
  }
  steps_ += record.steps;
  warmup_ += record.warmup_excluded;
  total_s_ += SecondsOf(window);
  ranks_[record.rank].push_back(window);
  for (size_t i = 0; i < record.phases_s.size(); ++i) {
    const auto& [name, seconds] = record.phases_s[i];
    Phase& phase = FindPhase(i, name);
    phase.sum_s += seconds * steps;
    if (keeps_samples_) phase.samples_s.push_back(seconds);
  }
  KeepLarger(record.peaks, peaks_);
  if (record.peaks && keeps_samples_) {
    alloc_bytes_.push_back(static_cast<double>(record.peaks->alloc_bytes));
  }
  if (record.eta_s) eta_s_ = record.eta_s;
  if (record.throughput) AddThroughput(*record.throughput, steps);
}

TrainingSummary TrainingTotals::Summarize(double straggler_ratio) const {
  TrainingSummary result;
  result.windows = num_windows_;
  result.steps = steps_;
  result.warmup = warmup_;
  result.total_s = total_s_;
  std::vector<WindowSteps> all;
  std::map<int64_t, std::vector<double>> medians;
  std::map<int64_t, int64_t> counts;
  for (const auto& [rank, windows] : ranks_) {
    for (const WindowSteps& window : windows) {
      all.push_back(window);
      medians[rank].push_back(window.p50_s);
      counts[rank] += window.steps;
    }
  }
  result.step = PoolSteps(all);
  for (const Phase& phase : phases_) {
    result.phases_s.emplace_back(
        phase.name, steps_ > 0 ? phase.sum_s / static_cast<double>(steps_) : 0);
  }
  if (total_s_ > 0) result.samples_per_s = samples_ / total_s_;
  result.dit = dit_.Finish();
  result.peaks = peaks_;
  result.ranks = CompareRanks(medians, counts, straggler_ratio);
  if (!medians.empty()) {
    result.changes = FindChangePoints(medians.begin()->second);
  }
  result.eta_s = eta_s_;
  return result;
}

std::vector<std::string> TrainingTotals::SummaryLines() const {
  std::vector<std::string> lines;
  for (const auto& [rank, windows] : ranks_) {
    int64_t steps = 0;
    double total_s = 0;
    for (const WindowSteps& window : windows) {
      steps += window.steps;
      total_s += SecondsOf(window);
    }
    const PooledSteps pooled = PoolSteps(windows);
    const auto line = FormatTrainSummary(
        absl::StrCat("[Perf][rank", rank, "]"), steps,
        {pooled.p50.value_s, pooled.p50.is_estimate()},
        {pooled.p95.value_s, pooled.p95.is_estimate()}, total_s);
    if (line) lines.push_back(*line);
  }
  return lines;
}

void TrainingTotals::AddSamples(
    std::map<std::string, std::vector<double>>& samples) const {
  for (const auto& [rank, windows] : ranks_) {
    for (const WindowSteps& window : windows) {
      samples["step_s_p50"].push_back(window.p50_s);
      samples["step_s_p95"].push_back(window.p95_s);
    }
  }
  for (const Phase& phase : phases_) {
    if (phase.samples_s.empty()) continue;
    samples[absl::StrCat("phases_s.", phase.name)] = phase.samples_s;
  }
  if (!alloc_bytes_.empty()) {
    samples["train_peak_alloc_bytes"] = alloc_bytes_;
  }
}

}  // namespace firstframe
