#include "lib/metrics/perf_report_text.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/text_width.h"

namespace firstframe {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

void WriteInputs(const PerfInputs& inputs, std::ostream& out) {
  out << absl::StrFormat("%d file%s, %d lines", inputs.files.size(),
                         inputs.files.size() == 1 ? "" : "s", inputs.lines);
  if (inputs.other_kinds > 0) {
    out << absl::StrFormat(", %d of other kinds left out", inputs.other_kinds);
  }
  if (inputs.malformed > 0) {
    out << absl::StrFormat(", %d malformed", inputs.malformed);
  }
  if (inputs.torn > 0) {
    out << absl::StrFormat(", %d half-written at the end", inputs.torn);
  }
  out << '\n';
}

void WriteRate(absl::string_view what, const PerfRate& rate,
               std::ostream& out) {
  if (!rate.tflops || rate.flops == 0) return;
  out << absl::StrFormat("  %-12s %.3g TFLOPS", what, *rate.tflops);
  if (rate.mfu) {
    out << absl::StrFormat(", MFU %.2f%%", *rate.mfu * 100);
    if (rate.hfu && *rate.hfu != *rate.mfu) {
      out << absl::StrFormat(", HFU %.2f%%", *rate.hfu * 100);
    }
    if (std::max(*rate.mfu, rate.hfu.value_or(0)) > 1) {
      out << " (over 100%: check the peak and the time)";
    }
  } else {
    out << ", MFU n/a (no peak in the records)";
  }
  if (rate.attn_share > 0) {
    out << absl::StrFormat(", attention %.0f%%", rate.attn_share * 100);
  }
  out << '\n';
}

void WriteRanks(const std::vector<PerfRank>& ranks, std::ostream& out) {
  if (ranks.size() < 2) return;
  out << "  rank     count      p50_s  of median\n";
  for (const PerfRank& rank : ranks) {
    out << absl::StrFormat("  %4d %9d %10.4f %9.1f%%%s\n", rank.rank,
                           rank.count, rank.p50_s, rank.ratio * 100,
                           rank.is_straggler ? "  straggler" : "");
  }
}

void WriteChanges(absl::string_view what,
                  const std::vector<ChangePoint>& changes, std::ostream& out) {
  for (const ChangePoint& change : changes) {
    out << absl::StrFormat(
        "  change       at %s %d: %.4f -> %.4f s (%+.1f%%)\n", what,
        change.index, change.before, change.after,
        (change.after / change.before - 1) * 100);
  }
}

void WritePeaks(const std::optional<MemoryPeaks>& peaks, std::ostream& out) {
  if (!peaks) return;
  out << absl::StrFormat("  %-12s allocated %.2f GiB, reserved %.2f GiB\n",
                         "peak memory",
                         static_cast<double>(peaks->alloc_bytes) / kGib,
                         static_cast<double>(peaks->reserved_bytes) / kGib);
}

void WriteRequests(const PerfReport::Requests& requests, std::ostream& out) {
  const Distribution& e2e = requests.e2e_s;
  out << absl::StrFormat("requests       %d measured", e2e.count);
  if (requests.warmup > 0) {
    out << absl::StrFormat(", %d warm-up excluded", requests.warmup);
  }
  if (requests.skipped > 0) {
    out << absl::StrFormat(", %d skipped", requests.skipped);
  }
  out << '\n';
  if (e2e.count == 0) return;
  out << absl::StrFormat(
      "  %-12s p50 %.3f s, p95 %.3f s, p99 %.3f s, mean %.3f s, %.3f to %.3f "
      "s\n",
      "end to end", e2e.p50, e2e.p95, e2e.p99, e2e.mean, e2e.min, e2e.max);
  if (requests.per_hour) {
    out << absl::StrFormat("  %-12s %.1f requests/hour a rank\n", "throughput",
                           *requests.per_hour);
  }
  WriteRate("transformer", requests.dit, out);
  WriteRate("vae", requests.vae, out);
  WritePeaks(requests.peaks, out);
  WriteChanges("request", requests.changes, out);
  WriteRanks(requests.ranks, out);
  out << "\n  stage              calls    total_s  share    mean_ms     p50_ms "
         "  "
         "  p95_ms     p99_ms     max_ms\n";
  for (const PerfReport::Stage& stage : requests.stages) {
    out << absl::StrFormat(
        "  %s %7d %10.3f %5.1f%% %10.2f %10.2f %10.2f %10.2f %10.2f\n",
        FitWidth(PrintableText(stage.name), 16), stage.calls, stage.total_s,
        stage.share * 100, stage.call_ms.mean, stage.call_ms.p50,
        stage.call_ms.p95, stage.call_ms.p99, stage.call_ms.max);
  }
}

// Records hold windows, not steps: what they leave open is said.
std::string StepText(const PooledPercentile& percentile) {
  if (percentile.low_s == percentile.high_s) {
    return absl::StrFormat("%.3f s", percentile.value_s);
  }
  if (std::isinf(percentile.high_s)) {
    return absl::StrFormat("~%.3f s (pooled from windows)", percentile.value_s);
  }
  return absl::StrFormat("~%.3f s (windows allow %.3f to %.3f)",
                         percentile.value_s, percentile.low_s,
                         percentile.high_s);
}

void WriteTraining(const TrainingSummary& training, std::ostream& out) {
  out << absl::StrFormat("training       %d steps in %d windows",
                         training.steps, training.windows);
  if (training.warmup > 0) {
    out << absl::StrFormat(", %d warm-up excluded", training.warmup);
  }
  out << '\n';
  out << absl::StrFormat("  %-12s p50 %s, p95 %s\n", "step",
                         StepText(training.step.p50),
                         StepText(training.step.p95));
  out << absl::StrFormat("  %-12s %.3f samples/s, all data-parallel ranks\n",
                         "throughput", training.samples_per_s);
  WriteRate("transformer", training.dit, out);
  WritePeaks(training.peaks, out);
  if (training.eta_s) {
    out << absl::StrFormat("  %-12s %.2f h\n", "remaining",
                           *training.eta_s / 3600);
  }
  WriteChanges("window", training.changes, out);
  WriteRanks(training.ranks, out);
  double sum = 0;
  for (const auto& [name, seconds] : training.phases_s) sum += seconds;
  out << "\n  phase                 s/step  share\n";
  for (const auto& [name, seconds] : training.phases_s) {
    out << absl::StrFormat("  %s %11.4f %5.1f%%\n",
                           FitWidth(PrintableText(name), 16), seconds,
                           sum > 0 ? seconds / sum * 100 : 0);
  }
}

void JsonDistribution(const Distribution& d, JsonWriter& json) {
  json.BeginObject();
  json.Key("count").Int(d.count);
  json.Key("mean").Double(d.mean);
  json.Key("min").Double(d.min);
  json.Key("p50").Double(d.p50);
  json.Key("p95").Double(d.p95);
  json.Key("p99").Double(d.p99);
  json.Key("max").Double(d.max);
  json.EndObject();
}

void JsonRate(const PerfRate& rate, JsonWriter& json) {
  json.BeginObject();
  json.Key("flops").Double(rate.flops);
  json.Key("time_s").Double(rate.seconds);
  json.Key("attn_share").Double(rate.attn_share);
  json.Key("tflops").OptionalDouble(rate.tflops);
  json.Key("mfu").OptionalDouble(rate.mfu);
  json.Key("hfu").OptionalDouble(rate.hfu);
  json.Key("above_peak").Bool(rate.hfu && *rate.hfu > 1);
  json.EndObject();
}

void JsonPeaks(const std::optional<MemoryPeaks>& peaks, JsonWriter& json) {
  json.Key("peak_alloc_bytes");
  peaks ? json.Int(peaks->alloc_bytes) : json.Null();
  json.Key("peak_reserved_bytes");
  peaks ? json.Int(peaks->reserved_bytes) : json.Null();
}

void JsonRanks(const std::vector<PerfRank>& ranks, JsonWriter& json) {
  json.Key("ranks").BeginArray();
  for (const PerfRank& rank : ranks) {
    json.BeginObject();
    json.Key("rank").Int(rank.rank);
    json.Key("count").Int(rank.count);
    json.Key("p50_s").Double(rank.p50_s);
    json.Key("ratio").Double(rank.ratio);
    json.Key("straggler").Bool(rank.is_straggler);
    json.EndObject();
  }
  json.EndArray();
}

void JsonChanges(const std::vector<ChangePoint>& changes, JsonWriter& json) {
  json.Key("changes").BeginArray();
  for (const ChangePoint& change : changes) {
    json.BeginObject();
    json.Key("index").Uint(change.index);
    json.Key("before_s").Double(change.before);
    json.Key("after_s").Double(change.after);
    json.EndObject();
  }
  json.EndArray();
}

void JsonRequests(const PerfReport::Requests& requests, JsonWriter& json) {
  json.BeginObject();
  json.Key("total").Int(requests.total);
  json.Key("warmup").Int(requests.warmup);
  json.Key("skipped").Int(requests.skipped);
  json.Key("e2e_s");
  JsonDistribution(requests.e2e_s, json);
  json.Key("requests_per_hour").OptionalDouble(requests.per_hour);
  json.Key("dit");
  JsonRate(requests.dit, json);
  json.Key("vae");
  JsonRate(requests.vae, json);
  JsonPeaks(requests.peaks, json);
  json.Key("stages").BeginArray();
  for (const PerfReport::Stage& stage : requests.stages) {
    json.BeginObject();
    json.Key("name").String(stage.name);
    json.Key("requests").Int(stage.requests);
    json.Key("calls").Int(stage.calls);
    json.Key("total_s").Double(stage.total_s);
    json.Key("share").Double(stage.share);
    json.Key("call_ms");
    JsonDistribution(stage.call_ms, json);
    json.EndObject();
  }
  json.EndArray();
  JsonRanks(requests.ranks, json);
  JsonChanges(requests.changes, json);
  json.EndObject();
}

void JsonStep(const std::string& key, const PooledPercentile& percentile,
              JsonWriter& json) {
  json.Key(key).Double(percentile.value_s);
  json.Key(key + "_low").Double(percentile.low_s);
  json.Key(key + "_high").Double(percentile.high_s);
}

void JsonTraining(const TrainingSummary& training, JsonWriter& json) {
  json.BeginObject();
  json.Key("windows").Int(training.windows);
  json.Key("steps").Int(training.steps);
  json.Key("warmup").Int(training.warmup);
  json.Key("total_s").Double(training.total_s);
  JsonStep("step_s_p50", training.step.p50, json);
  JsonStep("step_s_p95", training.step.p95, json);
  json.Key("step_s_is_estimate")
      .Bool(training.step.p50.is_estimate() || training.step.p95.is_estimate());
  json.Key("phases_s").BeginObject();
  for (const auto& [name, seconds] : training.phases_s) {
    json.Key(name).Double(seconds);
  }
  json.EndObject();
  json.Key("samples_per_s").Double(training.samples_per_s);
  json.Key("dit");
  JsonRate(training.dit, json);
  JsonPeaks(training.peaks, json);
  json.Key("eta_s").OptionalDouble(training.eta_s);
  JsonRanks(training.ranks, json);
  JsonChanges(training.changes, json);
  json.EndObject();
}

}  // namespace

void WritePerfText(const PerfInputs& inputs, const PerfReport& report,
                   std::ostream& out) {
  WriteInputs(inputs, out);
  if (report.has_requests()) {
    out << '\n';
    WriteRequests(report.SummarizeRequests(), out);
  }
  if (report.has_training()) {
    out << '\n';
    WriteTraining(report.SummarizeTraining(), out);
  }
}

void WritePerfJson(const PerfInputs& inputs, const PerfReport& report,
                   JsonWriter& json) {
  json.Key("inputs").BeginObject();
  json.Key("files").BeginArray();
  for (const std::string& file : inputs.files) json.String(file);
  json.EndArray();
  json.Key("lines").Int(inputs.lines);
  json.Key("size_bytes").Int(inputs.bytes);
  json.Key("other_kinds").Int(inputs.other_kinds);
  json.Key("malformed_lines").Int(inputs.malformed);
  json.Key("torn_lines").Int(inputs.torn);
  json.EndObject();
  json.Key("requests");
  if (report.has_requests()) {
    JsonRequests(report.SummarizeRequests(), json);
  } else {
    json.Null();
  }
  json.Key("training");
  if (report.has_training()) {
    JsonTraining(report.SummarizeTraining(), json);
  } else {
    json.Null();
  }
}

}  // namespace firstframe
