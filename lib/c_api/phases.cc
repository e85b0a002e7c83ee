// ff_phase_*: lib/phase behind handles.

#include <atomic>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/c_api/border.h"
#include "lib/c_api/scope_stack.h"
#include "lib/phase/phase.h"
#include "lib/phase/phase_json.h"

using firstframe::c_api::Guard;
using firstframe::c_api::NotNull;
using firstframe::c_api::ScopeStack;

struct ff_phase_recorder {
  explicit ff_phase_recorder(firstframe::PhaseRecorder::Options options)
      : recorder(std::move(options)) {}
  firstframe::PhaseRecorder recorder;
  std::atomic<int> collectors = 0;
};

struct ff_phase_collector {
  ff_phase_collector(ff_phase_recorder* owner, const char* lane)
      : owner(owner), collector(&owner->recorder, lane) {}
  ff_phase_recorder* const owner;
  firstframe::PhaseCollector collector;
};

struct ff_phase {
  explicit ff_phase(const char* name) : phase(name) {}
  firstframe::ScopedPhase phase;
};

namespace {

// Collectors and phases of a thread, in the order in which they were begun.
ScopeStack& Scopes() {
  thread_local ScopeStack stack;
  return stack;
}

template <typename Value>
ff_status SetAttribute(ff_phase* phase, const char* name, Value value) {
  if (phase == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(name, "name"));
    FF_RETURN_IF_ERROR(Scopes().CheckHolds(phase, "phase"));
    phase->phase.SetAttribute(name, value);
    return absl::OkStatus();
  });
}

}  // namespace

extern "C" {

ff_status ff_phase_recorder_create(void (*synchronize)(void*), void* argument,
                                   ff_phase_recorder** recorder) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(recorder, "recorder"));
    firstframe::PhaseRecorder::Options options;
    if (synchronize != nullptr) {
      options.synchronize = [=] { synchronize(argument); };
    }
    *recorder = new ff_phase_recorder(std::move(options));
    return absl::OkStatus();
  });
}

ff_status ff_phase_recorder_destroy(ff_phase_recorder* recorder) {
  if (recorder == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    if (recorder->collectors != 0) {
      return absl::FailedPreconditionError(
          "the recorder has open collectors: close them first");
    }
    delete recorder;
    return absl::OkStatus();
  });
}

ff_status ff_phase_collector_open(ff_phase_recorder* recorder, const char* lane,
                                  ff_phase_collector** collector) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(recorder, "recorder"));
    FF_RETURN_IF_ERROR(NotNull(lane, "lane"));
    FF_RETURN_IF_ERROR(NotNull(collector, "collector"));
    *collector = new ff_phase_collector(recorder, lane);
    ++recorder->collectors;
    Scopes().Push(*collector);
    return absl::OkStatus();
  });
}

ff_status ff_phase_collector_close(ff_phase_collector* collector) {
  if (collector == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(collector, "collector"));
    ff_phase_recorder* const owner = collector->owner;
    delete collector;
    --owner->collectors;
    return absl::OkStatus();
  });
}

ff_status ff_phase_begin(const char* name, ff_phase** phase) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(name, "name"));
    FF_RETURN_IF_ERROR(NotNull(phase, "phase"));
    if (firstframe::CurrentPhase().recorder == nullptr) {
      *phase = nullptr;
      return absl::OkStatus();
    }
    *phase = new ff_phase(name);
    Scopes().Push(*phase);
    return absl::OkStatus();
  });
}

ff_status ff_phase_set_int(ff_phase* phase, const char* name, int64_t value) {
  return SetAttribute(phase, name, value);
}

ff_status ff_phase_set_double(ff_phase* phase, const char* name, double value) {
  return SetAttribute(phase, name, value);
}

ff_status ff_phase_set_text(ff_phase* phase, const char* name,
                            const char* value) {
  return SetAttribute(phase, name, value == nullptr ? "" : value);
}

ff_status ff_phase_end(ff_phase* phase, const char* error) {
  if (phase == nullptr) return FF_OK;
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(Scopes().Pop(phase, "phase"));
    if (error != nullptr) phase->phase.Fail(absl::UnknownError(error));
    delete phase;
    return absl::OkStatus();
  });
}

ff_status ff_phase_recorder_json(const ff_phase_recorder* recorder,
                                 char** json) {
  return Guard([&]() -> absl::Status {
    FF_RETURN_IF_ERROR(NotNull(recorder, "recorder"));
    FF_RETURN_IF_ERROR(NotNull(json, "json"));
    std::string text;
    firstframe::JsonWriter writer(&text);
    writer.BeginObject();
    firstframe::WritePhaseReportKeys(recorder->recorder.Report(), writer);
    writer.EndObject();
    *json = firstframe::c_api::CopyText(text);
    return absl::OkStatus();
  });
}

}  // extern "C"
