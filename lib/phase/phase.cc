#include "lib/phase/phase.h"

#include "lib/base/check.h"

namespace firstframe {
namespace {

// Recorder and lane of current_phase_log; here, so that the hot path carries
// one thread-local word.
constinit thread_local PhaseAnchor current_lane;

}  // namespace

PhaseCollector::PhaseCollector(PhaseRecorder* recorder,
                               absl::string_view lane) {
  Install(recorder, lane, {});
}

PhaseCollector::PhaseCollector(const PhaseAnchor& parent,
                               absl::string_view lane) {
  if (parent.recorder != nullptr) Install(parent.recorder, lane, parent);
}

void PhaseCollector::Install(PhaseRecorder* recorder, absl::string_view lane,
                             const PhaseAnchor& parent) {
  recorder_ = recorder;
  previous_log_ = internal::current_phase_log;
  previous_lane_ = current_lane;
  const auto [number, log] = recorder->OpenLane(lane, parent);
  log_ = log;
  internal::current_phase_log = log;
  current_lane = {.recorder = recorder, .lane = number};
}

PhaseCollector::~PhaseCollector() {
  if (recorder_ == nullptr) return;
  // Elsewhere the wrong thread would be restored, and phases would outlive the
  // lane.
  FF_CHECK(internal::current_phase_log == log_);
  FF_CHECK(log_->current() == internal::kNoPhase);
  internal::current_phase_log = previous_log_;
  current_lane = previous_lane_;
  recorder_->CloseLane();
}

PhaseAnchor CurrentPhase() {
  PhaseAnchor anchor = current_lane;
  if (anchor.recorder != nullptr) {
    anchor.index = internal::current_phase_log->current();
  }
  return anchor;
}

}  // namespace firstframe
