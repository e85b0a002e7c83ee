// Phase records: where the time of a run went, as plain data.
//
// A phase is a named interval of one thread or process. Phases nest: a parent's
// duration includes its children's, so do not add both. Format:
// docs/formats/phases.md.

#ifndef LIB_PHASE_PHASE_RECORD_H_
#define LIB_PHASE_PHASE_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace firstframe {

enum class PhaseStatus { kOk, kError };

// A fact about a phase. The unit is part of the name ("read_bytes").
struct PhaseAttribute {
  std::string name;
  std::variant<int64_t, double, std::string> value;

  bool operator==(const PhaseAttribute&) const = default;
};

struct PhaseRecord {
  int64_t id = 0;  // unique in its report
  std::optional<int64_t> parent_id;
  std::string name;
  int64_t start_offset_ns = 0;  // since the report's origin
  int64_t duration_ns = 0;
  PhaseStatus status = PhaseStatus::kOk;
  std::string error;  // empty when the status is kOk
  int32_t lane = 0;   // index into PhaseReport::lanes
  std::vector<PhaseAttribute> attributes;

  bool operator==(const PhaseRecord&) const = default;
};

// A row of the timeline: what runs one phase at a time.
struct PhaseLane {
  std::string name;
  int64_t pid = 0;
  int64_t tid = 0;

  bool operator==(const PhaseLane&) const = default;
};

struct PhaseReport {
  // From the origin to the end of the recording, gaps between phases included.
  int64_t recording_duration_ns = 0;
  std::vector<PhaseLane> lanes;
  std::vector<PhaseRecord> phases;  // in order of start

  bool operator==(const PhaseReport&) const = default;
};

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_RECORD_H_
