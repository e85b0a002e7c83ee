#include "lib/metrics/perf_record.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/json_writer.h"
#include "lib/base/percentile.h"
#include "lib/metrics/exact_sum.h"

namespace firstframe {
namespace {

void WritePeaks(JsonWriter& json, const std::string& device,
                const std::optional<MemoryPeaks>& peaks) {
  if (!device.empty()) json.Key("device").String(device);
  if (!peaks) return;
  json.Key("peak_alloc_bytes").Int(peaks->alloc_bytes);
  json.Key("peak_reserved_bytes").Int(peaks->reserved_bytes);
}

void WriteStage(JsonWriter& json, const StageSummary& stage) {
  json.BeginObject();
  json.Key("count").Int(stage.count);
  json.Key("total_ms").Double(stage.total_ms);
  json.Key("mean_ms").Double(stage.mean_ms);
  json.Key("std_ms").Double(stage.std_ms);
  json.Key("min_ms").Double(stage.min_ms);
  json.Key("max_ms").Double(stage.max_ms);
  json.EndObject();
}

void WriteDit(JsonWriter& json, const DitThroughput& dit) {
  json.BeginObject();
  json.Key("params").Int(dit.params);
  json.Key("tokens").Int(dit.tokens);
  json.Key("batch").Int(dit.batch);
  json.Key("devices").Int(dit.devices);
  json.Key("flops_per_fwd").Double(dit.flops_per_fwd);
  json.Key("attn_share").Double(dit.attn_share);
  json.Key("tflops").Double(dit.tflops);
  json.Key("peak_tflops").OptionalDouble(dit.peak_tflops);
  json.Key("mfu").OptionalDouble(dit.mfu);
  json.EndObject();
}

void WriteVae(JsonWriter& json, const VaeThroughput& vae) {
  json.BeginObject();
  json.Key("flops_per_call").Double(vae.flops_per_call);
  json.Key("calls").Int(vae.calls);
  json.Key("tflops").Double(vae.tflops);
  json.Key("peak_tflops").OptionalDouble(vae.peak_tflops);
  json.Key("mfu").OptionalDouble(vae.mfu);
  json.EndObject();
}

void WritePriced(JsonWriter& json, const WindowThroughput::Priced& priced) {
  json.Key("params").Int(priced.params);
  json.Key("trainable").Int(priced.trainable);
  json.Key("tokens").Double(priced.tokens);
  json.Key("priced_steps").Int(priced.priced_steps);
  json.Key("priced_s").Double(priced.priced_s);
  json.Key("flops_coef").Double(priced.flops_coef);
  json.Key("flops_coef_hw").Double(priced.flops_coef_hw);
  json.Key("flops_coef_reason").String(priced.flops_coef_reason);
  json.Key("flops_per_step").Double(priced.flops_per_step);
  json.Key("attn_share").Double(priced.attn_share);
  json.Key("devices").Int(priced.devices);
  json.Key("tflops").Double(priced.tflops);
  json.Key("hw_tflops").Double(priced.hw_tflops);
  json.Key("peak_tflops").OptionalDouble(priced.peak_tflops);
  json.Key("mfu").OptionalDouble(priced.mfu);
  json.Key("hfu").OptionalDouble(priced.hfu);
}

std::string FormatPeaks(const MemoryPeaks& peaks) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  return absl::StrFormat("peak_alloc %.1fGiB peak_reserved %.1fGiB",
                         static_cast<double>(peaks.alloc_bytes) / kGib,
                         static_cast<double>(peaks.reserved_bytes) / kGib);
}

std::string OverDevices(int64_t devices) {
  return devices > 1 ? absl::StrFormat(" over %d GPUs", devices) : "";
}

std::string FormatStage(absl::string_view name, const StageSummary& stage) {
  const double seconds = stage.total_ms / 1000.0;
  if (stage.count == 1) return absl::StrFormat("%s %.2fs(1x)", name, seconds);
  return absl::StrFormat("%s %.2fs(%dx, %.0f+-%.0fms, min %.0f max %.0f)", name,
                         seconds, stage.count, stage.mean_ms, stage.std_ms,
                         stage.min_ms, stage.max_ms);
}

std::string FormatDit(const DitThroughput& dit) {
  std::string segment =
      absl::StrFormat("DiT %.2e FLOPs/fwd (attn %.0f%%) -> %.1f TFLOPS",
                      dit.flops_per_fwd, dit.attn_share * 100, dit.tflops);
  if (dit.mfu && dit.peak_tflops) {
    absl::StrAppendFormat(&segment, " (MFU %.1f%% @%.0f%s)", *dit.mfu * 100,
                          *dit.peak_tflops, OverDevices(dit.devices));
  } else {
    segment += " (MFU n/a)";
  }
  return segment;
}

std::string FormatVae(const VaeThroughput& vae) {
  std::string segment = absl::StrFormat("VAE %.2e FLOPs/call -> %.1f TFLOPS",
                                        vae.flops_per_call, vae.tflops);
  if (vae.mfu && vae.peak_tflops) {
    absl::StrAppendFormat(&segment, " (MFU %.1f%% @%.0f)", *vae.mfu * 100,
                          *vae.peak_tflops);
  } else {
    segment += " (MFU n/a)";
  }
  return segment;
}

std::string FormatPriced(const WindowThroughput::Priced& priced,
                         int64_t steps) {
  const double trainable = priced.params > 0
                               ? static_cast<double>(priced.trainable) /
                                     static_cast<double>(priced.params) * 100.0
                               : 0.0;
  std::string segment = absl::StrFormat(
      "DiT %.1fB params (trainable %.3g%%, %s, attn %.0f%%) %.2e FLOPs/step -> "
      "%.1f TFLOPS",
      static_cast<double>(priced.params) / 1e9, trainable,
      priced.flops_coef_reason, priced.attn_share * 100, priced.flops_per_step,
      priced.tflops);
  if (priced.mfu && priced.hfu && priced.peak_tflops) {
    absl::StrAppendFormat(&segment, " (MFU %.1f%% / HFU %.1f%% @%.0f%s)",
                          *priced.mfu * 100, *priced.hfu * 100,
                          *priced.peak_tflops, OverDevices(priced.devices));
  } else {
    segment += " (MFU n/a)";
  }
  if (priced.priced_steps < steps) {
    absl::StrAppendFormat(&segment, " [%d/%d steps priced]",
                          priced.priced_steps, steps);
  }
  return segment;
}

}  // namespace

StageSummary SummarizeStage(const std::vector<double>& values_ms) {
  StageSummary stage;
  stage.count = static_cast<int64_t>(values_ms.size());
  const double n = static_cast<double>(values_ms.size());
  stage.total_ms = ExactSum(values_ms);
  stage.mean_ms = stage.total_ms / n;
  std::vector<double> squares;
  for (const double value : values_ms) {
    squares.push_back((value - stage.mean_ms) * (value - stage.mean_ms));
  }
  stage.std_ms = n > 1 ? std::sqrt(ExactSum(squares) / (n - 1)) : 0.0;
  stage.min_ms = *std::min_element(values_ms.begin(), values_ms.end());
  stage.max_ms = *std::max_element(values_ms.begin(), values_ms.end());
  return stage;
}

std::string ToJson(const RequestRecord& record) {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Key("kind").String("request");
  json.Key("ts").Double(record.ts);
  json.Key("rank").Int(record.rank);
  json.Key("world_size").Int(record.world_size);
  json.Key("req").Int(record.req);
  json.Key("warmup").Bool(record.warmup);
  json.Key("e2e_s").Double(record.e2e_s);
  json.Key("stages").BeginObject();
  for (const auto& [name, stage] : record.stages) {
    json.Key(name);
    WriteStage(json, stage);
  }
  json.EndObject();
  json.Key("dit");
  record.dit ? WriteDit(json, *record.dit) : static_cast<void>(json.Null());
  if (record.vae) {
    json.Key("vae");
    WriteVae(json, *record.vae);
  }
  WritePeaks(json, record.device, record.peaks);
  json.EndObject();
  return text;
}

std::string ToJson(const TrainWindowRecord& record) {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Key("kind").String("train_window");
  json.Key("ts").Double(record.ts);
  json.Key("rank").Int(record.rank);
  json.Key("world_size").Int(record.world_size);
  json.Key("step_first").Int(record.step_first);
  json.Key("step_last").Int(record.step_last);
  json.Key("steps").Int(record.steps);
  json.Key("warmup_excluded").Int(record.warmup_excluded);
  json.Key("step_s_p50").Double(record.step_s_p50);
  json.Key("step_s_p95").Double(record.step_s_p95);
  json.Key("phases_s").BeginObject();
  for (const auto& [name, seconds] : record.phases_s) {
    json.Key(name).Double(seconds);
  }
  json.EndObject();
  json.Key("micro_steps").Double(record.micro_steps);
  json.Key("overrun_s").Double(record.overrun_s);
  WritePeaks(json, record.device, record.peaks);
  json.Key("throughput");
  if (const auto& throughput = record.throughput) {
    json.BeginObject();
    json.Key("samples_per_s").Double(throughput->samples_per_s);
    json.Key("samples").Double(throughput->samples);
    json.Key("wall_s").Double(throughput->wall_s);
    json.Key("dp").Int(throughput->dp);
    if (throughput->priced) WritePriced(json, *throughput->priced);
    json.EndObject();
  } else {
    json.Null();
  }
  if (record.eta_s) json.Key("eta_s").Double(*record.eta_s);
  json.EndObject();
  return text;
}

std::string FormatRequest(absl::string_view tag, const RequestRecord& record) {
  std::vector<std::string> parts = {
      absl::StrFormat("req#%d%s", record.req, record.warmup ? " warmup" : ""),
      absl::StrFormat("e2e %.2fs", record.e2e_s)};
  auto stages = record.stages;
  std::sort(stages.begin(), stages.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [name, stage] : stages) {
    parts.push_back(FormatStage(name, stage));
  }
  if (record.peaks) parts.push_back(FormatPeaks(*record.peaks));
  if (record.dit) parts.push_back(FormatDit(*record.dit));
  if (record.vae) parts.push_back(FormatVae(*record.vae));
  return absl::StrCat(tag, " ", absl::StrJoin(parts, " | "));
}

std::string FormatTrainWindow(absl::string_view tag,
                              const TrainWindowRecord& record) {
  std::string span =
      absl::StrFormat("step %d-%d", record.step_first, record.step_last);
  if (record.warmup_excluded > 0) {
    absl::StrAppendFormat(&span, " (%d warmup excluded)",
                          record.warmup_excluded);
  }
  std::vector<std::string> parts = {
      std::move(span), absl::StrFormat("%.2fs/step p95 %.2fs",
                                       record.step_s_p50, record.step_s_p95)};
  parts.push_back(absl::StrJoin(
      record.phases_s, " ", [](std::string* out, const auto& phase) {
        absl::StrAppendFormat(out, "%s %.2fs", phase.first, phase.second);
      }));
  if (record.micro_steps > 1.0) {
    parts.push_back(absl::StrFormat("%.0f micro-steps", record.micro_steps));
  }
  // The phases came to more than the step: device work drained across them.
  if (record.overrun_s > 0.02 * std::max(record.step_s_p50, 1e-9)) {
    parts.push_back(absl::StrFormat("overrun %.2fs", record.overrun_s));
  }
  const auto& throughput = record.throughput;
  if (throughput) {
    parts.push_back(absl::StrFormat("%.3f samples/s (local, dp=%d)",
                                    throughput->samples_per_s, throughput->dp));
  }
  if (record.peaks) parts.push_back(FormatPeaks(*record.peaks));
  if (throughput && throughput->priced) {
    parts.push_back(FormatPriced(*throughput->priced, record.steps));
  }
  if (record.eta_s) {
    parts.push_back(absl::StrFormat("ETA %.1fh", *record.eta_s / 3600.0));
  }
  return absl::StrCat(tag, " ", absl::StrJoin(parts, " | "));
}

std::optional<std::string> FormatRequestSummary(
    absl::string_view tag, const RequestSummaryInput& input) {
  if (input.e2e_s.empty()) return std::nullopt;
  std::vector<double> sorted = input.e2e_s;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> parts = {absl::StrFormat("%d reqs", sorted.size())};
  if (input.warmup_excluded > 0) {
    absl::StrAppendFormat(&parts[0], " (%d warmup excluded)",
                          input.warmup_excluded);
  }
  parts.push_back(absl::StrFormat("e2e p50 %.1fs p95 %.1fs",
                                  PercentileOfSorted(sorted, 50),
                                  PercentileOfSorted(sorted, 95)));
  if (input.transformer_calls > 0) {
    parts.push_back(absl::StrFormat(
        "transformer mean %.0fms/step",
        input.transformer_ms / static_cast<double>(input.transformer_calls)));
  }
  const double total = ExactSum(input.e2e_s);
  if (total > 0) {
    parts.push_back(absl::StrFormat(
        "%.1f reqs/hour", static_cast<double>(sorted.size()) / total * 3600.0));
  }
  return absl::StrFormat("%s === %s ===", tag, absl::StrJoin(parts, " | "));
}

std::optional<std::string> FormatTrainSummary(absl::string_view tag,
                                              int64_t steps, StepPercentile p50,
                                              StepPercentile p95,
                                              double total_s) {
  if (steps == 0) return std::nullopt;
  const auto about = [](const StepPercentile& percentile) {
    return percentile.is_estimate ? "~" : "";
  };
  return absl::StrFormat(
      "%s === %d steps | p50 %s%.2fs/step p95 %s%.2fs | %.2fh in-loop ===", tag,
      steps, about(p50), p50.seconds, about(p95), p95.seconds,
      total_s / 3600.0);
}

}  // namespace firstframe
