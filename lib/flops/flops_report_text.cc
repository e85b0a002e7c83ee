// Renderings of a FlopsReport.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/flops/flops_report.h"

namespace firstframe {
namespace {

constexpr int kNumClasses = static_cast<int>(OperatorClass::kConvolution) + 1;

std::string TrainingText(const RunOptions& run) {
  switch (run.training) {
    case TrainingMode::kNone:
      return "inference";
    case TrainingMode::kFull:
      return "full training";
    case TrainingMode::kLora:
      return absl::StrFormat("LoRA training, rank %d", run.lora_rank);
  }
  return "";
}

absl::string_view CheckpointingName(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::kNone:
      return "none";
    case Checkpointing::kFull:
      return "full";
    case Checkpointing::kSelective:
      return "selective";
  }
  return "";
}

void WriteComponent(const ComponentCost& component, std::ostream& out) {
  const double total = static_cast<double>(component.forward.TotalFlops());
  out << component.model.name << "  (" << component.model.class_name << ")\n";
  if (component.tokens > 0) {
    out << absl::StrFormat("  tokens a sample      %d", component.tokens);
    if (component.text_tokens > 0) {
      out << absl::StrFormat(", text %d", component.text_tokens);
    }
    out << '\n';
  }
  out << absl::StrFormat(
      "  one call             %.6g FLOPs, %.6g calls a run\n", total,
      component.calls);
  for (int i = 0; i < kNumClasses; ++i) {
    const auto operator_class = static_cast<OperatorClass>(i);
    const double flops =
        static_cast<double>(component.forward.FlopsOf(operator_class));
    if (flops == 0) continue;
    out << absl::StrFormat("    %-18s %14.6g  %5.1f%%\n",
                           OperatorClassName(operator_class), flops,
                           flops / total * 100);
  }
  if (component.compat_forward) {
    out << absl::StrFormat(
        "  VIDEOX_PERF's figure %.6g FLOPs a sample (2 params tokens + "
        "widths",
        *component.compat_forward);
    const CompatModel& compat = *component.model.compat;
    if (compat.text_tokens > 0) {
      out << absl::StrFormat(", text %d", compat.text_tokens);
    } else if (compat.widths.cross > 0) {
      out << "; no text: this class does not state its length";
    }
    out << ")\n";
  }
  for (const std::string& note : component.model.notes) {
    out << "  note: " << note << '\n';
  }
}

void WriteUtilization(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  const Utilization& use = *report.utilization;
  out << absl::StrFormat("  measured             %.6g ms -> %.4g TFLOPS\n",
                         *request.time_ms, use.tflops);
  if (!use.mfu) {
    out << "  MFU                  n/a: " << request.peak.reason << '\n';
    return;
  }
  const std::string over = absl::StrFormat(
      "(%.6g s x %g TFLOPS x %d device%s)", *request.time_ms / 1e3,
      *request.peak.tflops, report.total.devices,
      report.total.devices == 1 ? "" : "s");
  const std::pair<const char*, double> rows[] = {
      {"MFU", *use.mfu},
      {"executed MFU", *use.executed_mfu},
      {"HFU", *use.hfu}};
  const double numerators[] = {report.total.model, report.total.executed,
                               report.total.hardware};
  for (int i = 0; i < 3; ++i) {
    out << absl::StrFormat("  %-20s %.2f%% = %.6g / %s\n", rows[i].first,
                           rows[i].second * 100, numerators[i], over);
  }
  if (use.above_peak) {
    out << "  over 100%: the time or the peak is wrong, or the board boosts "
           "past "
           "its datasheet\n";
  }
  out << "  peak from            " << request.peak.reason << '\n';
}

void WriteRoofline(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  if (!request.peak.device || !request.peak.tflops ||
      request.peak.device->memory_gb_per_s() <= 0) {
    return;
  }
  for (const ComponentCost& component : report.components) {
    const Roofline roofline = ComputeRoofline(
        component.forward, MathTypeBytes(request.math), *request.peak.tflops,
        request.peak.device->memory_gb_per_s());
    out << absl::StrFormat(
        "  roofline             %s: %.4g FLOPs/byte, ridge %.4g: %s bound; "
        "one call at least %.4g ms\n",
        component.model.name, roofline.intensity, roofline.ridge,
        roofline.compute_bound ? "compute" : "memory",
        roofline.min_seconds * 1e3);
  }
}

}  // namespace

void WriteFlopsText(const FlopsReport& report, std::ostream& out) {
  const FlopsRequest& request = report.request;
  const RunOptions& run = request.run;
  for (const ComponentCost& component : report.components) {
    WriteComponent(component, out);
    out << '\n';
  }
  out << absl::StrFormat(
      "run: %d frames of %dx%d, batch %d, %s, %d step%s of %d forward%s",
      request.video.frames, request.video.height, request.video.width,
      request.batch, TrainingText(run), run.steps, run.steps == 1 ? "" : "s",
      run.forwards_per_step, run.forwards_per_step == 1 ? "" : "s");
  if (run.cached_forwards > 0) {
    out << absl::StrFormat(", %d cached", run.cached_forwards);
  }
  if (run.attention_density < 1) {
    out << absl::StrFormat(", attention density %g", run.attention_density);
  }
  if (run.causal_blocks > 0) {
    out << absl::StrFormat(", causal in %d blocks", run.causal_blocks);
  }
  if (run.checkpointing != Checkpointing::kNone) {
    out << ", checkpointing " << CheckpointingName(run.checkpointing);
  }
  out << '\n';
  const RunCost& total = report.total;
  out << absl::StrFormat(
      "  model                %.6g FLOPs (dense, every step, no "
      "recomputation)\n"
      "  executed             %.6g FLOPs\n"
      "  hardware             %.6g FLOPs (recomputation included)\n",
      total.model, total.executed, total.hardware);
  if (total.devices > 1) {
    out << absl::StrFormat("  a device             %.6g FLOPs, %d devices\n",
                           total.per_device_hardware, total.devices);
  }
  if (report.utilization) WriteUtilization(report, out);
  WriteRoofline(report, out);
}

void WriteFlopsJson(const FlopsReport& report, JsonWriter& json) {
  const FlopsRequest& request = report.request;
  const RunOptions& run = request.run;
  json.Key("context").BeginObject();
  json.Key("frames").Int(request.video.frames);
  json.Key("height").Int(request.video.height);
  json.Key("width").Int(request.video.width);
  json.Key("batch").Int(request.batch);
  json.Key("steps").Int(run.steps);
  json.Key("forwards_per_step").Int(run.forwards_per_step);
  json.Key("cached_forwards").Int(run.cached_forwards);
  json.Key("attention_density").Double(run.attention_density);
  json.Key("causal_blocks").Int(run.causal_blocks);
  json.Key("training").String(TrainingText(run));
  json.Key("checkpointing").String(CheckpointingName(run.checkpointing));
  json.Key("lora_rank").Int(run.lora_rank);
  json.Key("devices").Int(report.total.devices);
  json.Key("math").String(MathTypeName(request.math));
  json.Key("device");
  request.peak.device ? json.String(request.peak.device->board()) : json.Null();
  json.Key("peak_tflops").OptionalDouble(request.peak.tflops);
  json.Key("peak_reason").String(request.peak.reason);
  json.Key("time_ms").OptionalDouble(request.time_ms);
  json.EndObject();
  json.Key("components").BeginArray();
  for (const ComponentCost& component : report.components) {
    json.BeginObject();
    json.Key("name").String(component.model.name);
    json.Key("class").String(component.model.class_name);
    json.Key("tokens").Int(component.tokens);
    json.Key("text_tokens").Int(component.text_tokens);
    json.Key("forward_flops").Int(component.forward.TotalFlops());
    json.Key("forward_bytes")
        .Double(component.forward.TotalBytes(MathTypeBytes(request.math)));
    json.Key("calls").Double(component.calls);
    json.Key("by_class").BeginObject();
    for (int i = 0; i < kNumClasses; ++i) {
      const auto operator_class = static_cast<OperatorClass>(i);
      const int64_t flops = component.forward.FlopsOf(operator_class);
      if (flops > 0) json.Key(OperatorClassName(operator_class)).Int(flops);
    }
    json.EndObject();
    json.Key("by_operator").BeginObject();
    for (const AtenOperator aten : {AtenOperator::kAddmm, AtenOperator::kBmm,
                                    AtenOperator::kConvolution}) {
      json.Key(AtenOperatorName(aten)).Int(component.forward.FlopsOf(aten));
    }
    json.EndObject();
    json.Key("compat_forward_flops").OptionalDouble(component.compat_forward);
    json.Key("compat_text_tokens").Int(component.model.stated_text_tokens);
    json.Key("model_flops").Double(component.run.model);
    json.Key("executed_flops").Double(component.run.executed);
    json.Key("hardware_flops").Double(component.run.hardware);
    json.Key("notes").BeginArray();
    for (const std::string& note : component.model.notes) json.String(note);
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("summary").BeginObject();
  json.Key("model_flops").Double(report.total.model);
  json.Key("executed_flops").Double(report.total.executed);
  json.Key("hardware_flops").Double(report.total.hardware);
  json.Key("hardware_flops_per_device")
      .Double(report.total.per_device_hardware);
  const Utilization use = report.utilization.value_or(Utilization{});
  json.Key("tflops");
  report.utilization ? json.Double(use.tflops) : json.Null();
  json.Key("mfu").OptionalDouble(use.mfu);
  json.Key("executed_mfu").OptionalDouble(use.executed_mfu);
  json.Key("hfu").OptionalDouble(use.hfu);
  json.Key("above_peak").Bool(use.above_peak);
  json.EndObject();
}

}  // namespace firstframe
