#include "lib/metrics/perf_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lib/base/percentile.h"
#include "lib/metrics/exact_sum.h"

namespace firstframe {

Distribution DescribeValues(std::vector<double> values) {
  const double sum = ExactSum(values);
  return DescribeValues(std::move(values), sum);
}

Distribution DescribeValues(std::vector<double> values, double sum) {
  Distribution d;
  d.count = static_cast<int64_t>(values.size());
  if (values.empty()) return d;
  d.mean = sum / static_cast<double>(values.size());
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

PerfReport::StageValues::StageValues(absl::string_view stage)
    : name(stage),
      is_transformer(absl::StartsWith(stage, "transformer")),
      is_vae(absl::StartsWith(stage, "vae")) {}

// Records name their stages in one order: the place of the last record's is
// tried first.
PerfReport::StageValues& PerfReport::FindStage(size_t expected,
                                               absl::string_view name) {
  if (expected < stages_.size() && stages_[expected].name == name) {
    return stages_[expected];
  }
  for (StageValues& stage : stages_) {
    if (stage.name == name) return stage;
  }
  return stages_.emplace_back(name);
}

PerfReport::Busy PerfReport::AddStages(const RequestRecord& record) {
  Busy busy;
  for (size_t i = 0; i < record.stages.size(); ++i) {
    const auto& [name, stage] = record.stages[i];
    StageValues& values = FindStage(i, name);
    values.min_ms = values.calls == 0 ? stage.min_ms
                                      : std::min(values.min_ms, stage.min_ms);
    values.max_ms = std::max(values.max_ms, stage.max_ms);
    values.calls += stage.count;
    values.total_ms += stage.total_ms;
    values.mean_ms.push_back(stage.mean_ms);
    if (options_.keep_samples) values.request_ms.push_back(stage.total_ms);
    if (values.is_transformer) {
      busy.transformer_s += stage.total_ms / 1e3;
      busy.transformer_calls += stage.count;
    } else if (values.is_vae) {
      busy.vae_s += stage.total_ms / 1e3;
    }
  }
  return busy;
}

void PerfReport::AddRates(const RequestRecord& record, const Busy& busy) {
  if (record.dit) {
    // The record's own rate says over which time its FLOPs ran.
    const double flops =
        record.dit->flops_per_fwd * static_cast<double>(busy.transformer_calls);
    const double seconds = record.dit->tflops > 0
                               ? flops / record.dit->tflops / 1e12
                               : busy.transformer_s;
    dit_.Add(flops, flops, seconds, record.dit->attn_share,
             record.dit->peak_tflops);
  }
  if (record.vae) {
    const double flops =
        record.vae->flops_per_call * static_cast<double>(record.vae->calls);
    vae_.Add(flops, flops, busy.vae_s, 0, record.vae->peak_tflops);
  }
}

void PerfReport::Add(const RequestRecord& record) {
  ++num_requests_;
  RankRequests& rank = ranks_[record.rank];
  if (record.warmup && !options_.include_warmup) {
    ++rank.warmup;
    return;
  }
  if (rank.seen++ < options_.skip) {
    ++num_skipped_;
    return;
  }
  rank.e2e_s.push_back(record.e2e_s);
  const Busy busy = AddStages(record);
  rank.transformer_ms += busy.transformer_s * 1e3;
  rank.transformer_calls += busy.transformer_calls;
  AddRates(record, busy);
  KeepLarger(record.peaks, request_peaks_);
  if (record.peaks && options_.keep_samples) {
    request_alloc_bytes_.push_back(
        static_cast<double>(record.peaks->alloc_bytes));
  }
  if (options_.keep_records && kept_requests_.size() < kMaxKept) {
    kept_requests_.push_back(record);
  }
}

void PerfReport::Add(const TrainWindowRecord& record) {
  training_.Add(record);
  if (options_.keep_records && kept_windows_.size() < kMaxKept) {
    kept_windows_.push_back(record);
  }
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
  result.ranks = CompareRanks(by_rank, counts, options_.straggler_ratio);
  if (!by_rank.empty()) {
    result.changes = FindChangePoints(by_rank.begin()->second);
  }
  result.e2e_s = DescribeValues(std::move(all), result.total_s);
  for (const StageValues& values : stages_) {
    Stage stage;
    stage.name = values.name;
    stage.requests = static_cast<int64_t>(values.mean_ms.size());
    stage.calls = values.calls;
    stage.total_s = values.total_ms / 1e3;
    if (result.total_s > 0) stage.share = stage.total_s / result.total_s;
    stage.call_ms = DescribeValues(values.mean_ms, 0);
    stage.call_ms.mean =
        values.calls > 0 ? values.total_ms / static_cast<double>(values.calls)
                         : 0;
    stage.call_ms.min = values.min_ms;
    stage.call_ms.max = values.max_ms;
    result.stages.push_back(std::move(stage));
  }
  std::sort(result.stages.begin(), result.stages.end(),
            [](const Stage& a, const Stage& b) { return a.name < b.name; });
  result.dit = dit_.Finish();
  result.vae = vae_.Finish();
  result.peaks = request_peaks_;
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
  for (std::string& line : training_.SummaryLines()) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::map<std::string, std::vector<double>> PerfReport::Samples() const {
  std::map<std::string, std::vector<double>> samples;
  for (const auto& [rank, values] : ranks_) {
    std::vector<double>& all = samples["e2e_s"];
    all.insert(all.end(), values.e2e_s.begin(), values.e2e_s.end());
  }
  for (const StageValues& values : stages_) {
    samples[absl::StrCat("stages.", values.name, ".total_ms")] =
        values.request_ms;
    samples[absl::StrCat("stages.", values.name, ".mean_ms")] = values.mean_ms;
  }
  if (!request_alloc_bytes_.empty()) {
    samples["peak_alloc_bytes"] = request_alloc_bytes_;
  }
  training_.AddSamples(samples);
  return samples;
}

}  // namespace firstframe
