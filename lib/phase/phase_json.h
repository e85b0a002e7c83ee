// Phase reports as JSON, both ways. Format: docs/formats/phases.md.

#ifndef LIB_PHASE_PHASE_JSON_H_
#define LIB_PHASE_PHASE_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/json_writer.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

// Writes the keys of `report` ("recording_duration_ns", "lanes", "phases") into
// the object that the caller has begun, so that they sit among keys of its own.
void WritePhaseReportKeys(const PhaseReport& report, JsonWriter& json);

// Reads one report object; keys it does not know are ignored. DataLoss with the
// key's path, what was found and what was expected. Any parent_id that names a
// phase of the report is accepted, also one that makes a cycle: see
// phase_tree.h.
absl::StatusOr<PhaseReport> ParsePhaseReport(absl::string_view json);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_JSON_H_
