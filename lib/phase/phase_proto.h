// Phase reports as phase.proto, both ways.

#ifndef LIB_PHASE_PHASE_PROTO_H_
#define LIB_PHASE_PHASE_PROTO_H_

#include "absl/status/statusor.h"
#include "lib/phase/phase.pb.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

// Names that are not UTF-8 are repaired, as in JSON.
proto::PhaseReport ToProto(const PhaseReport& report);

// DataLoss for a status that phase.proto does not name.
absl::StatusOr<PhaseReport> FromProto(const proto::PhaseReport& report);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_PROTO_H_
