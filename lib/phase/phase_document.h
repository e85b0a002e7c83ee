// The document a startup tool writes: one or more runs and what they sum up to.
// Format: docs/formats/phases.md.

#ifndef LIB_PHASE_PHASE_DOCUMENT_H_
#define LIB_PHASE_PHASE_DOCUMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/base/json_writer.h"
#include "lib/base/version.h"
#include "lib/phase/phase_record.h"

namespace firstframe {

struct PhaseDocument {
  std::string tool;  // "vae_startup"
  BuildInfo build;
  // One JSON object: machine, versions, cache state, whatever the tool knows.
  std::string context_json = "{}";
  std::vector<PhaseReport> samples;  // one a run
  // Of each sample, a JSON object of further facts, or empty. Either as many as
  // samples or none.
  std::vector<std::string> sample_facts_json;
};

// Writes the document as one object: schema, tool, context, samples, summary.
void WritePhaseDocument(const PhaseDocument& document, JsonWriter& json);

// Reads such a document, or a lone report as a document of one sample. DataLoss
// with the key's path, what was found and what was expected.
absl::StatusOr<PhaseDocument> ParsePhaseDocument(absl::string_view json);

}  // namespace firstframe

#endif  // LIB_PHASE_PHASE_DOCUMENT_H_
