// Whatever the bytes, parsing yields a document or an error; what was parsed
// can be rendered in every form.

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json_writer.h"
#include "lib/phase/phase_document.h"
#include "lib/phase/phase_json.h"
#include "lib/phase/phase_test_report.h"
#include "lib/phase/phase_text.h"
#include "lib/phase/phase_trace.h"

std::vector<std::string> FuzzSeeds() {
  std::string text;
  firstframe::JsonWriter json(&text);
  firstframe::WritePhaseDocument(
      {.tool = "vae_startup", .samples = {firstframe::MakePhaseTestReport()}},
      json);
  return {text, R"({"recording_duration_ns":5,"phases":[]})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace firstframe;
  const absl::StatusOr<PhaseDocument> document = ParsePhaseDocument(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  for (const PhaseReport& report : document->samples) {
    std::ostringstream text;
    WritePhaseText(report, {}, text);
    std::string trace;
    WritePhaseTrace(report, "fuzz", &trace);
  }
  std::string json_text;
  JsonWriter json(&json_text);
  WritePhaseDocument(*document, json);
  FF_CHECK(ParsePhaseDocument(json_text).ok());
  return 0;
}
