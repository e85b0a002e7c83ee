// ff_perf_*, ff_request_*, ff_stage_*, ff_train_*: lib/metrics.

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/node_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/firstframe.h"
#include "lib/c_api/model.h"
#include "lib/c_api/scope_stack.h"
#include "lib/cuda/runtime.h"
#include "lib/metrics/perf_settings.h"
#include "lib/metrics/perf_sink.h"
#include "lib/metrics/request_recorder.h"
#include "lib/metrics/training_recorder.h"
#include "lib/timing/marker.h"

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;
using firstframe::c_api::ScopeStack;

namespace {

class CallerMemory final : public firstframe::MemoryProbe {
 public:
  explicit CallerMemory(const ff_perf_options& options) : options_(options) {}

  void ResetPeak() override { options_.reset_peak(options_.argument); }
  std::optional<firstframe::MemoryPeaks> Peaks() override {
    firstframe::MemoryPeaks peaks;
    if (!options_.peaks(options_.argument, &peaks.alloc_bytes,
                        &peaks.reserved_bytes)) {
      return std::nullopt;
    }
    return peaks;
  }

 private:
  const ff_perf_options options_;
};

firstframe::MarkerDevice DeviceOf(const ff_perf_options& options) {
  if (options.device == FF_HOST) return {};
  firstframe::MarkerDevice device = {&firstframe::cuda::GetRuntime(),
                                     options.device, options.stream};
  if (options.current_stream != nullptr) {
    device.current_stream = [options] {
      return options.current_stream(options.argument);
    };
  }
  return device;
}

firstframe::PerfSettings ReadSettings(const ff_perf_options& options) {
  return firstframe::ReadPerfSettings([&](const char* name) -> const char* {
    return options.get != nullptr ? options.get(name) : std::getenv(name);
  });
}

// Stages keep their names by pointer, which must live as long as a request.
const char* InternStageName(const char* name) {
  static absl::Mutex* const mutex = new absl::Mutex;
  static auto* const names = new absl::node_hash_set<std::string>;
  absl::MutexLock lock(mutex);
  return names->emplace(name).first->c_str();
}

ScopeStack& Scopes() {
  thread_local ScopeStack stack;
  return stack;
}

}  // namespace

struct ff_perf {
  ff_perf(firstframe::PerfSettings settings, const ff_perf_options& options)
      : sink(std::move(settings), &std::cerr),
        markers(firstframe::MonotonicClock::Get(), DeviceOf(options)) {
    if (options.reset_peak != nullptr && options.peaks != nullptr) {
      memory.emplace(options);
    }
    firstframe::MemoryProbe* const probe = memory ? &*memory : nullptr;
    requests.emplace(sink, markers, probe);
    training.emplace(sink, markers, probe);
    if (options.peak_tflops > 0) {
      requests->SetPeakTflops(options.peak_tflops);
      training->SetPeakTflops(options.peak_tflops);
    }
  }

  firstframe::PerfSink sink;
  firstframe::MarkerSource markers;
  std::optional<CallerMemory> memory;
  std::optional<firstframe::RequestRecorder> requests;
  std::optional<firstframe::TrainingRecorder> training;
};

struct ff_request {
  explicit ff_request(ff_perf& perf) : scope(*perf.requests) {}
  firstframe::RequestScope scope;
};

struct ff_stage {
  explicit ff_stage(const char* name) : scope(name) {}
  firstframe::StageScope scope;
};

struct ff_train_scope {
  std::optional<firstframe::MicroStepScope> micro;
  std::optional<firstframe::PhaseScope> phase;
  std::optional<firstframe::OptimizerScope> optimizer;
};

extern "C" {

ff_status ff_perf_create(const ff_perf_options* options, ff_perf** perf) {
  return Guard([&]() -> absl::Status {
    ff_perf_options from;
    FF_RETURN_IF_ERROR(firstframe::c_api::ReadStruct(options, "options", from));
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    firstframe::PerfSettings settings = ReadSettings(from);
    *perf =
        settings.enabled() ? new ff_perf(std::move(settings), from) : nullptr;
    return absl::OkStatus();
  });
}

void ff_perf_destroy(ff_perf* perf) {
  if (perf == nullptr) return;
  Guard([&]() -> absl::Status {
    perf->requests->ReportSummary();
    perf->training->Finish();
    delete perf;
    return absl::OkStatus();
  });
}

ff_status ff_perf_set_transformer(ff_perf* perf, const char* stage,
                                  const ff_model* model) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(stage, "stage"));
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    perf->requests->SetTransformer(stage, model->compat);
    return absl::OkStatus();
  });
}

ff_status ff_request_begin(ff_perf* perf, ff_request** request) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(request, "request"));
    *request = new ff_request(*perf);
    Scopes().Push(*request);
    return absl::OkStatus();
  });
}

ff_status ff_request_end(ff_request* request) {
  if (request == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(request, "request"));
    delete request;
    return absl::OkStatus();
  });
}

ff_status ff_stage_begin(const char* name, ff_stage** stage) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(name, "name"));
    FF_RETURN_IF_ERROR(NotNull(stage, "stage"));
    if (firstframe::internal::current_request == nullptr) {
      *stage = nullptr;
      return absl::OkStatus();
    }
    *stage = new ff_stage(InternStageName(name));
    Scopes().Push(*stage);
    return absl::OkStatus();
  });
}

ff_status ff_stage_end(ff_stage* stage, int64_t tokens, int64_t batch) {
  if (stage == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(stage, "stage"));
    if (tokens > 0) stage->scope.SetShape(tokens, batch);
    delete stage;
    return absl::OkStatus();
  });
}

ff_status ff_train_set_model(ff_perf* perf, const ff_model* model,
                             int64_t trainable, int32_t checkpointing,
                             int64_t sequence_parallel) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(model, "model"));
    if (sequence_parallel < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sequence_parallel is ", sequence_parallel, ", expected 1 or more"));
    }
    perf->training->SetModel({.model = model->compat,
                              .trainable = trainable,
                              .checkpointing = checkpointing != 0,
                              .sequence_parallel = sequence_parallel});
    return absl::OkStatus();
  });
}

ff_status ff_train_micro_begin(ff_perf* perf, ff_train_scope** scope) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(scope, "scope"));
    auto made = std::make_unique<ff_train_scope>();
    made->micro.emplace(*perf->training);
    Scopes().Push(made.get());
    *scope = made.release();
    return absl::OkStatus();
  });
}

ff_status ff_train_phase_begin(ff_perf* perf, int32_t phase,
                               ff_train_scope** scope) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(scope, "scope"));
    if (phase < FF_TRAIN_VAE_ENCODE || phase > FF_TRAIN_CLIP) {
      return absl::InvalidArgumentError(
          absl::StrCat("phase is ", phase, ", expected one of ff_train_phase"));
    }
    auto made = std::make_unique<ff_train_scope>();
    made->phase.emplace(*perf->training, static_cast<firstframe::Phase>(phase));
    Scopes().Push(made.get());
    *scope = made.release();
    return absl::OkStatus();
  });
}

ff_status ff_train_optimizer_begin(ff_perf* perf, const void* optimizer,
                                   int32_t is_boundary,
                                   ff_train_scope** scope) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(perf, "perf"));
    FF_RETURN_IF_ERROR(NotNull(scope, "scope"));
    auto made = std::make_unique<ff_train_scope>();
    made->optimizer.emplace(*perf->training, optimizer, is_boundary != 0);
    Scopes().Push(made.get());
    *scope = made.release();
    return absl::OkStatus();
  });
}

ff_status ff_train_end(ff_train_scope* scope, int64_t tokens, int64_t batch) {
  if (scope == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(scope, "training scope"));
    if (tokens > 0 && scope->phase) scope->phase->SetShape(tokens, batch);
    delete scope;
    return absl::OkStatus();
  });
}

}  // extern "C"
