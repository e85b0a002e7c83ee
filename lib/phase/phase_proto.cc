#include "lib/phase/phase_proto.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/utf8.h"

namespace firstframe {

proto::PhaseReport ToProto(const PhaseReport& report) {
  proto::PhaseReport out;
  out.set_recording_duration_ns(report.recording_duration_ns);
  for (const PhaseLane& lane : report.lanes) {
    proto::PhaseLane* const to = out.add_lanes();
    to->set_name(ToValidUtf8(lane.name));
    to->set_pid(lane.pid);
    to->set_tid(lane.tid);
  }
  for (const PhaseRecord& phase : report.phases) {
    proto::PhaseRecord* const to = out.add_phases();
    to->set_id(phase.id);
    if (phase.parent_id) to->set_parent_id(*phase.parent_id);
    to->set_name(ToValidUtf8(phase.name));
    to->set_start_offset_ns(phase.start_offset_ns);
    to->set_duration_ns(phase.duration_ns);
    to->set_status(phase.status == PhaseStatus::kOk
                       ? proto::PhaseRecord::OK
                       : proto::PhaseRecord::ERROR);
    to->set_error(ToValidUtf8(phase.error));
    to->set_lane(phase.lane);
    for (const PhaseAttribute& attribute : phase.attributes) {
      proto::PhaseAttribute* const into = to->add_attributes();
      into->set_name(ToValidUtf8(attribute.name));
      if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
        into->set_integer(*integer);
      } else if (const auto* real = std::get_if<double>(&attribute.value)) {
        into->set_real(*real);
      } else {
        into->set_text(ToValidUtf8(std::get<std::string>(attribute.value)));
      }
    }
  }
  return out;
}

absl::StatusOr<PhaseReport> FromProto(const proto::PhaseReport& report) {
  PhaseReport out = {.recording_duration_ns = report.recording_duration_ns()};
  for (const proto::PhaseLane& lane : report.lanes()) {
    out.lanes.push_back(
        {.name = lane.name(), .pid = lane.pid(), .tid = lane.tid()});
  }
  for (const proto::PhaseRecord& from : report.phases()) {
    if (from.status() != proto::PhaseRecord::OK &&
        from.status() != proto::PhaseRecord::ERROR) {
      return absl::DataLossError(absl::StrCat(
          "phase ", from.id(), ": found status ",
          static_cast<int>(from.status()), ", expected OK or ERROR"));
    }
    PhaseRecord phase = {.id = from.id(),
                         .name = from.name(),
                         .start_offset_ns = from.start_offset_ns(),
                         .duration_ns = from.duration_ns(),
                         .status = from.status() == proto::PhaseRecord::OK
                                       ? PhaseStatus::kOk
                                       : PhaseStatus::kError,
                         .error = from.error(),
                         .lane = from.lane()};
    if (from.has_parent_id()) phase.parent_id = from.parent_id();
    for (const proto::PhaseAttribute& attribute : from.attributes()) {
      PhaseAttribute& into = phase.attributes.emplace_back();
      into.name = attribute.name();
      switch (attribute.value_case()) {
        case proto::PhaseAttribute::kReal:
          into.value = attribute.real();
          break;
        case proto::PhaseAttribute::kText:
          into.value = attribute.text();
          break;
        default:
          into.value = attribute.integer();
      }
    }
    out.phases.push_back(std::move(phase));
  }
  return out;
}

}  // namespace firstframe
