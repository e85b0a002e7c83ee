// AggregateWindow: settled steps into one record.

#include <algorithm>

#include "lib/base/percentile.h"
#include "lib/metrics/exact_sum.h"
#include "lib/metrics/training_recorder.h"

namespace firstframe {
namespace {

template <typename Getter>
std::vector<double> Column(const std::vector<StepRecord>& steps,
                           const Getter& get) {
  std::vector<double> values;
  values.reserve(steps.size());
  for (const StepRecord& step : steps) {
    values.push_back(static_cast<double>(get(step)));
  }
  return values;
}

double Mean(const std::vector<double>& values) {
  return ExactSum(values) / static_cast<double>(values.size());
}

double TotalSeconds(const std::vector<StepRecord>& steps) {
  return ExactSum(Column(steps, [](const auto& s) { return s.total_s; }));
}

WindowThroughput::Priced PriceSteps(const std::vector<StepRecord>& steps,
                                    double priced_s,
                                    const PerfSettings& settings,
                                    const TrainedModel& trained,
                                    std::optional<double> device_peak,
                                    int64_t dp) {
  CompatModel model = trained.model;
  if (settings.dit_params) model.params = *settings.dit_params;
  if (!settings.price_attention) model.widths = {};
  const TrainingCoefficients coefficients = CompatTrainingCoefficients(
      {.params = model.params,
       .trainable = trained.trainable,
       .checkpointing = trained.checkpointing,
       .attention_modules = model.widths.self > 0 ? model.widths.modules : 0,
       .price_attention = settings.price_attention,
       .coefficient = settings.flops_coefficient});
  double linear = 0;
  double attention = 0;
  for (const StepRecord& step : steps) {
    const double samples = static_cast<double>(step.samples);
    linear += model.LinearFlops(step.tokens) * samples;
    attention += model.AttentionFlops(step.tokens) * samples;
  }
  const double forward = linear + attention;
  const double ranks = static_cast<double>(dp);
  WindowThroughput::Priced priced;
  priced.params = model.params;
  priced.trainable = trained.trainable;
  priced.tokens = Mean(Column(steps, [](const auto& s) { return s.tokens; }));
  priced.priced_steps = static_cast<int64_t>(steps.size());
  priced.priced_s = priced_s;
  priced.flops_coef = coefficients.model;
  priced.flops_coef_hw = coefficients.hardware;
  priced.flops_coef_reason = coefficients.reason;
  priced.flops_per_step =
      coefficients.model * forward / static_cast<double>(steps.size());
  priced.attn_share = forward != 0 ? attention / forward : 0.0;
  priced.devices = settings.world_size;
  priced.tflops = coefficients.model * forward * ranks / priced_s / 1e12;
  priced.hw_tflops = coefficients.hardware * forward * ranks / priced_s / 1e12;
  const std::optional<double> peak =
      settings.peak_tflops ? settings.peak_tflops : device_peak;
  if (peak && *peak != 0) {
    priced.peak_tflops = *peak * static_cast<double>(settings.world_size);
    priced.mfu = priced.tflops / *priced.peak_tflops;
    priced.hfu = priced.hw_tflops / *priced.peak_tflops;
  }
  return priced;
}

std::optional<WindowThroughput> Throughput(
    const std::vector<StepRecord>& steps, const PerfSettings& settings,
    const std::optional<TrainedModel>& model,
    std::optional<double> device_peak) {
  WindowThroughput throughput;
  throughput.wall_s = TotalSeconds(steps);
  if (throughput.wall_s <= 0) return std::nullopt;
  const std::vector<double> samples =
      Column(steps, [](const auto& s) { return s.samples; });
  throughput.samples_per_s = ExactSum(samples) / throughput.wall_s;
  throughput.samples = Mean(samples);
  throughput.dp = DataParallelDegree(settings.world_size,
                                     model ? model->sequence_parallel : 1);
  std::vector<StepRecord> priced;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(priced),
               [](const auto& s) { return s.tokens > 0 && s.samples > 0; });
  const double priced_s = TotalSeconds(priced);
  const bool has_params =
      model && (model->model.params > 0 || settings.dit_params);
  if (!priced.empty() && priced_s > 0 && has_params) {
    throughput.priced = PriceSteps(priced, priced_s, settings, *model,
                                   device_peak, throughput.dp);
  }
  return throughput;
}

}  // namespace

TrainWindowRecord AggregateWindow(const std::vector<StepRecord>& steps,
                                  const PerfSettings& settings,
                                  const std::optional<TrainedModel>& model,
                                  std::optional<double> device_peak_tflops) {
  std::vector<StepRecord> measured;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(measured),
               [](const auto& s) { return !s.is_warmup; });
  if (measured.empty()) measured = steps;
  std::vector<double> totals =
      Column(measured, [](const auto& s) { return s.total_s; });
  std::sort(totals.begin(), totals.end());
  TrainWindowRecord record;
  record.rank = settings.rank;
  record.world_size = settings.world_size;
  record.step_first = steps.front().step;
  record.step_last = steps.back().step;
  record.steps = static_cast<int64_t>(measured.size());
  record.warmup_excluded = static_cast<int64_t>(steps.size()) - record.steps;
  record.step_s_p50 = PercentileOfSorted(totals, 50);
  record.step_s_p95 = PercentileOfSorted(totals, 95);
  for (int i = 0; i < kNumPhases; ++i) {
    const std::vector<double> values =
        Column(measured, [i](const auto& s) { return s.phases_s[i]; });
    const bool is_used = std::any_of(values.begin(), values.end(),
                                     [](double value) { return value != 0; });
    if (is_used) {
      record.phases_s.emplace_back(PhaseName(static_cast<Phase>(i)),
                                   Mean(values));
    }
  }
  record.micro_steps =
      Mean(Column(measured, [](const auto& s) { return s.micro_steps; }));
  record.overrun_s =
      Mean(Column(measured, [](const auto& s) { return s.overrun_s; }));
  record.throughput = Throughput(measured, settings, model, device_peak_tflops);
  if (settings.total_steps) {
    const int64_t remaining =
        std::max<int64_t>(0, *settings.total_steps - record.step_last - 1);
    record.eta_s = static_cast<double>(remaining) * record.step_s_p50;
  }
  return record;
}

}  // namespace firstframe
