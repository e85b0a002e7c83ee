#include "lib/phase/phase_recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace firstframe {
namespace {

// A phase before it has an id: `key` names it, `parent` names another.
using Key = std::pair<int32_t, int32_t>;  // lane, index in the lane
struct Pending {
  Key key;
  std::optional<Key> parent;
  int64_t start_ns = 0;
  PhaseRecord record;
};

// Phases added from outside are of no lane's log.
constexpr int32_t kMeasured = -1;

std::optional<Key> KeyOf(const PhaseAnchor& anchor) {
  if (anchor.recorder == nullptr || anchor.index == internal::kNoPhase) {
    return std::nullopt;
  }
  return Key(anchor.lane, anchor.index);
}

std::string ErrorText(const absl::Status& status) {
  return status.message().empty() ? absl::StatusCodeToString(status.code())
                                  : std::string(status.message());
}

Pending FromEntry(const internal::PhaseEntry& entry, Key key,
                  const PhaseAnchor& lane_parent, int64_t now_ns,
                  const absl::Status& interruption) {
  Pending pending = {.key = key, .start_ns = entry.start_ns};
  pending.parent = entry.parent == internal::kNoPhase
                       ? KeyOf(lane_parent)
                       : Key(key.first, entry.parent);
  PhaseRecord& record = pending.record;
  record.name.assign(entry.name, entry.name_size);
  record.lane = key.first;
  const int64_t end_ns = entry.end_ns.load(std::memory_order_acquire);
  if (end_ns == internal::kPhaseOpen) {
    record.duration_ns = std::max<int64_t>(now_ns - entry.start_ns, 0);
    record.status = PhaseStatus::kError;
    record.error = interruption.ok() ? "still open" : ErrorText(interruption);
    return pending;
  }
  record.duration_ns = end_ns - entry.start_ns;
  if (entry.details != nullptr) {
    record.status = entry.details->status;
    record.error = entry.details->error;
    record.attributes = entry.details->attributes;
  }
  return pending;
}

Pending FromMeasured(const MeasuredPhase& phase, int32_t index) {
  Pending pending = {.key = {kMeasured, index},
                     .parent = KeyOf(phase.parent),
                     .start_ns = phase.start_ns};
  PhaseRecord& record = pending.record;
  record.name = phase.name;
  record.lane = pending.parent ? pending.parent->first : 0;
  record.duration_ns = std::max<int64_t>(phase.end_ns - phase.start_ns, 0);
  record.attributes = phase.attributes;
  if (!phase.status.ok()) {
    record.status = PhaseStatus::kError;
    record.error = ErrorText(phase.status);
  }
  return pending;
}

}  // namespace

PhaseRecorder::PhaseRecorder(Options options)
    : options_(std::move(options)),
      origin_ns_(options_.origin_ns ? *options_.origin_ns
                                    : options_.clock->NowNs()) {}

std::pair<int32_t, internal::PhaseLog*> PhaseRecorder::OpenLane(
    absl::string_view name, const PhaseAnchor& parent) {
  const std::lock_guard lock(mutex_);
  Lane lane = {
      .description = {.name = std::string(name),
                      .pid = ::getpid(),
                      .tid = static_cast<int64_t>(::syscall(SYS_gettid))},
      .parent = parent,
      .log = std::make_unique<internal::PhaseLog>(*options_.clock,
                                                  options_.synchronize)};
  // A lane without an open phase passes on what it hangs under itself.
  if (parent.recorder == this && parent.index == internal::kNoPhase) {
    lane.parent = lanes_[parent.lane].parent;
  }
  internal::PhaseLog* const log = lane.log.get();
  lanes_.push_back(std::move(lane));
  ++open_lanes_;
  return {static_cast<int32_t>(lanes_.size()) - 1, log};
}

void PhaseRecorder::CloseLane() {
  const int64_t now_ns = NowNs();
  const std::lock_guard lock(mutex_);
  --open_lanes_;
  end_ns_ = now_ns;
}

void PhaseRecorder::Add(MeasuredPhase phase) {
  const std::lock_guard lock(mutex_);
  measured_.push_back(std::move(phase));
}

PhaseReport PhaseRecorder::Report(const absl::Status& interruption) const {
  const std::lock_guard lock(mutex_);
  std::vector<Pending> pending;
  PhaseReport report;
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    report.lanes.push_back(lanes_[lane].description);
    const internal::PhaseLog& log = *lanes_[lane].log;
    const int32_t size = log.size();
    // After size(), so that no phase it counts began later.
    const int64_t now_ns = NowNs();
    for (int32_t i = 0; i < size; ++i) {
      pending.push_back(FromEntry(log.Entry(i), {static_cast<int32_t>(lane), i},
                                  lanes_[lane].parent, now_ns, interruption));
    }
  }
  if (report.lanes.empty()) report.lanes.push_back({.name = "main"});
  for (const MeasuredPhase& phase : measured_) {
    pending.push_back(
        FromMeasured(phase, static_cast<int32_t>(&phase - measured_.data())));
  }
  // Among equal starts a parent comes first: it has the lower lane, or the
  // lower index in the same one.
  std::stable_sort(
      pending.begin(), pending.end(), [](const Pending& a, const Pending& b) {
        return std::tie(a.start_ns, a.key) < std::tie(b.start_ns, b.key);
      });
  const int64_t origin_ns =
      pending.empty() ? origin_ns_
                      : std::min(origin_ns_, pending.front().start_ns);
  std::map<Key, int64_t> ids;
  for (const Pending& phase : pending) ids.emplace(phase.key, ids.size());
  int64_t end_ns = end_ns_ && open_lanes_ == 0 ? *end_ns_ : NowNs();
  for (Pending& phase : pending) {
    PhaseRecord& record = phase.record;
    record.id = ids.at(phase.key);
    if (phase.parent) record.parent_id = ids.at(*phase.parent);
    record.start_offset_ns = phase.start_ns - origin_ns;
    end_ns = std::max(end_ns, phase.start_ns + record.duration_ns);
    report.phases.push_back(std::move(record));
  }
  report.recording_duration_ns = std::max<int64_t>(end_ns - origin_ns, 0);
  return report;
}

}  // namespace firstframe
