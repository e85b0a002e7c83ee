#include "lib/flops/flops_report.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "lib/base/status_macros.h"
#include "lib/flops/text_encoder_cost.h"
#include "lib/flops/transformer_model.h"
#include "lib/flops/wan_vae_cost.h"

namespace firstframe {
namespace {

absl::Status PriceTransformer(const FlopsRequest& request,
                              ComponentCost& component) {
  const TransformerConfig& config = *component.model.transformer();
  ForwardShape shape;
  shape.batch = request.batch;
  shape.text_tokens = request.text_tokens.value_or(config.default_text_tokens);
  shape.image_tokens =
      request.image_tokens.value_or(config.default_image_tokens);
  SetLatentSize(request.video, LatentFactorsOf(config), shape);
  if (config.family == TransformerFamily::kUnknown) {
    component.model.notes.push_back(
        "latents taken as 8x8 pixels and 4 frames, patches of 1x1x1");
  }
  component.tokens = LatentTokens(config, shape);
  component.text_tokens = shape.text_tokens;
  if (request.per_token_timesteps) shape.timestep_tokens = component.tokens;
  FF_ASSIGN_OR_RETURN(component.forward, TransformerForwardCost(config, shape));
  FF_ASSIGN_OR_RETURN(component.run, PriceRun(component.forward, request.run));
  component.calls = static_cast<double>(request.run.steps) *
                    static_cast<double>(request.run.forwards_per_step);
  if (component.model.compat) {
    component.compat_forward =
        component.model.compat->ForwardFlops(component.tokens);
  }
  return absl::OkStatus();
}

// What runs once a sample, in inference as in training, without a backward.
absl::Status PriceOnce(const FlopsRequest& request, int64_t calls,
                       ComponentCost& component) {
  RunOptions once;
  once.steps = calls;
  once.data_parallel = request.run.data_parallel;
  once.sequence_parallel = request.run.sequence_parallel;
  once.tensor_parallel = request.run.tensor_parallel;
  component.calls = static_cast<double>(calls);
  FF_ASSIGN_OR_RETURN(component.run, PriceRun(component.forward, once));
  return absl::OkStatus();
}

// In training, each step encodes its own samples.
int64_t CallsOf(const FlopsRequest& request, int64_t inference_calls) {
  return request.run.training == TrainingMode::kNone
             ? inference_calls
             : request.run.steps * request.run.gradient_accumulation;
}

absl::Status PriceVae(const FlopsRequest& request, ComponentCost& component) {
  const WanVaeCostConfig& config = *component.model.vae();
  const VideoSize& video = request.video;
  const bool encodes =
      request.encodes || request.run.training != TrainingMode::kNone;
  if (encodes) {
    FF_ASSIGN_OR_RETURN(
        component.forward,
        WanVaeEncodeCost(config, request.batch, video.frames, video.height,
                         video.width, request.tiling));
  } else {
    const int64_t factor = WanVaeSpatialFactor(config);
    FF_ASSIGN_OR_RETURN(
        component.forward,
        WanVaeDecodeCost(config, request.batch, (video.frames - 1) / 4 + 1,
                         video.height / factor, video.width / factor,
                         request.tiling));
  }
  component.model.notes.push_back(encodes ? "encode" : "decode");
  return PriceOnce(request, CallsOf(request, 1), component);
}

absl::Status PriceEncoder(const FlopsRequest& request,
                          ComponentCost& component) {
  const TextEncoderConfig& config = *component.model.text_encoder();
  const bool is_vision = config.image_size > 0;
  constexpr int64_t kClipTokens = 77;
  const int64_t otherwise = config.class_name.find("CLIP") == std::string::npos
                                ? request.text_tokens.value_or(512)
                                : kClipTokens;
  component.tokens = is_vision ? VisionTokens(config) : otherwise;
  FF_ASSIGN_OR_RETURN(
      component.forward,
      TextEncoderForwardCost(config, request.batch, component.tokens));
  // A negative prompt is encoded too.
  const int64_t calls = is_vision ? 1 : request.run.forwards_per_step;
  return PriceOnce(request, CallsOf(request, calls), component);
}

}  // namespace

absl::StatusOr<FlopsReport> BuildFlopsReport(
    std::vector<ModelDescription> models, const FlopsRequest& request) {
  FlopsReport report;
  report.request = request;
  bool has_transformer = false;
  for (ModelDescription& model : models) {
    ComponentCost component;
    component.model = std::move(model);
    const std::string name = component.model.name;
    if (component.model.transformer() != nullptr) {
      if (has_transformer) continue;  // of two experts, a step runs one
      has_transformer = true;
      FF_RETURN_IF_ERROR(Annotate(PriceTransformer(request, component), name));
    } else if (component.model.vae() != nullptr) {
      FF_RETURN_IF_ERROR(Annotate(PriceVae(request, component), name));
    } else {
      FF_RETURN_IF_ERROR(Annotate(PriceEncoder(request, component), name));
    }
    report.total.forward += component.run.forward;
    report.total.model += component.run.model;
    report.total.executed += component.run.executed;
    report.total.hardware += component.run.hardware;
    report.total.per_device_hardware += component.run.per_device_hardware;
    report.total.devices = component.run.devices;
    report.components.push_back(std::move(component));
  }
  if (request.time_ms) {
    FF_ASSIGN_OR_RETURN(report.utilization,
                        ComputeUtilization(report.total, *request.time_ms / 1e3,
                                           request.peak.tflops));
  }
  return report;
}

}  // namespace firstframe
