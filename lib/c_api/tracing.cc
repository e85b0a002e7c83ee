// ff_tracer_*: lib/activation.

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "lib/activation/activation_tracer.h"
#include "lib/activation/trace_options.h"
#include "lib/activation/trace_queue.h"
#include "lib/activation/trace_stat.h"
#include "lib/activation/trace_step.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/tensor.h"
#include "lib/tensor/strides.h"

using firstframe::c_api::CopyText;
using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;

struct ff_tracer {
  ff_tracer(std::unique_ptr<firstframe::ActivationTracer> made, bool with_order)
      : tracer(std::move(made)),
        order_matters(with_order),
        queue(tracer.get()) {}
  const std::unique_ptr<firstframe::ActivationTracer> tracer;
  const bool order_matters;
  firstframe::TraceQueue queue;
};

namespace {

std::optional<std::string> Optional(const char* text) {
  if (text == nullptr) return std::nullopt;
  return std::string(text);
}

std::optional<int64_t> Optional(const int64_t* step) {
  if (step == nullptr) return std::nullopt;
  return *step;
}

// Whether any of `stats` depends on the order of the elements.
bool OrderMatters(const std::vector<firstframe::TraceStat>& stats) {
  using firstframe::TraceStat;
  for (const TraceStat stat : stats) {
    if (stat == TraceStat::kAmaxIdx || stat == TraceStat::kHPos ||
        stat == TraceStat::kSk || stat == TraceStat::kSamp) {
      return true;
    }
  }
  return false;
}

absl::Status Record(ff_tracer& tracer, const char* module, const char* label,
                    std::optional<int64_t> step,
                    firstframe::c_api::TensorArgument tensor) {
  namespace c_api = firstframe::c_api;
  if (!tracer.order_matters && !tensor.strides.empty() &&
      firstframe::IsDense(tensor.shape, tensor.strides)) {
    tensor.strides.clear();  // read as it lies, which takes no copy
  }
  const firstframe::StatsRequest request = tracer.tracer->request();
  c_api::StatsPoll poll;
  if (tensor.device == FF_HOST) {
    FF_ASSIGN_OR_RETURN(const firstframe::TensorStats values,
                        c_api::HostStats(tensor, request));
    poll = [values](bool) { return std::optional(values); };
  } else {
    FF_ASSIGN_OR_RETURN(poll, c_api::EnqueueDeviceStats(tensor, request));
  }
  return tracer.queue.Add({.module = module,
                           .label = label,
                           .step = step,
                           .dtype = tensor.dtype,
                           .shape = tensor.shape,
                           .poll = std::move(poll)});
}

}  // namespace

extern "C" {

ff_status ff_tracer_create(const ff_trace_settings* settings,
                           ff_tracer** tracer, char** warnings) {
  return Guard([&]() -> absl::Status {
    ff_trace_settings from;
    FF_RETURN_IF_ERROR(
        firstframe::c_api::ReadStruct(settings, "settings", from));
    FF_RETURN_IF_ERROR(NotNull(tracer, "tracer"));
    FF_RETURN_IF_ERROR(NotNull(warnings, "warnings"));
    FF_ASSIGN_OR_RETURN(const firstframe::TraceOptions options,
                        firstframe::ResolveTraceOptions(
                            {.activations = Optional(from.activations),
                             .layers = Optional(from.layers),
                             .stats = Optional(from.stats),
                             .output = Optional(from.output),
                             .steps = Optional(from.steps)}));
    FF_ASSIGN_OR_RETURN(
        std::unique_ptr<firstframe::ActivationTracer> made,
        firstframe::ActivationTracer::Create(options, ::getpid()));
    *tracer = made == nullptr
                  ? nullptr
                  : new ff_tracer(std::move(made), OrderMatters(options.stats));
    *warnings = options.warnings.empty()
                    ? nullptr
                    : CopyText(absl::StrJoin(options.warnings, "\n"));
    return absl::OkStatus();
  });
}

ff_status ff_tracer_attach(ff_tracer* tracer, const char* const* modules,
                           size_t count, char** message) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(tracer, "tracer"));
    FF_RETURN_IF_ERROR(NotNull(message, "message"));
    if (count > 0) FF_RETURN_IF_ERROR(NotNull(modules, "modules"));
    const std::vector<std::string> names(modules, modules + count);
    *message = CopyText(tracer->tracer->Attach(names));
    return absl::OkStatus();
  });
}

int32_t ff_tracer_traces(const ff_tracer* tracer, const char* module) {
  return tracer != nullptr && module != nullptr &&
         tracer->tracer->Traces(module);
}

int32_t ff_tracer_wants(const ff_tracer* tracer, const int64_t* step) {
  if (tracer == nullptr) return 0;
  const firstframe::TraceStep scope(Optional(step));
  return tracer->tracer->StepIsWanted();
}

ff_status ff_tracer_record(ff_tracer* tracer, const char* module,
                           const char* label, const int64_t* step,
                           const ff_tensor* tensor) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(tracer, "tracer"));
    FF_RETURN_IF_ERROR(NotNull(module, "module"));
    FF_RETURN_IF_ERROR(NotNull(label, "label"));
    FF_ASSIGN_OR_RETURN(auto argument, firstframe::c_api::ReadTensor(tensor));
    if (!ff_tracer_wants(tracer, step)) return absl::OkStatus();
    return Record(*tracer, module, label, Optional(step), std::move(argument));
  });
}

ff_status ff_tracer_flush(ff_tracer* tracer) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(tracer, "tracer"));
    return tracer->queue.Flush();
  });
}

void ff_tracer_destroy(ff_tracer* tracer) {
  if (tracer == nullptr) return;
  ff_tracer_flush(tracer);
  delete tracer;
}

}  // extern "C"
