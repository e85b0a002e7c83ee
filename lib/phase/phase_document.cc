#include "lib/phase/phase_document.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/phase/phase_json.h"
#include "lib/phase/phase_summary.h"
#include "simdjson.h"

namespace firstframe {
namespace {

constexpr absl::string_view kSchema = "firstframe.phases";
constexpr int kSchemaVersion = 1;

void WriteStatistics(const DurationStatistics& duration, JsonWriter& json) {
  json.Key("min_ns").Int(duration.min_ns);
  json.Key("median_ns").Int(duration.median_ns);
  json.Key("p95_ns").Int(duration.p95_ns);
  json.Key("samples_ns").BeginArray();
  for (const int64_t sample : duration.samples_ns) json.Int(sample);
  json.EndArray();
}

void WriteSummary(const PhaseSummary& summary, JsonWriter& json) {
  json.BeginObject();
  json.Key("runs").Int(
      static_cast<int64_t>(summary.recording.samples_ns.size()));
  json.Key("recording_duration").BeginObject();
  WriteStatistics(summary.recording, json);
  json.EndObject();
  json.Key("phases").BeginArray();
  for (const PhaseStatistics& phase : summary.phases) {
    json.BeginObject();
    json.Key("path").String(phase.path);
    json.Key("name").String(phase.name);
    json.Key("depth").Int(phase.depth);
    WriteStatistics(phase.duration, json);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

void WritePhaseDocument(const PhaseDocument& document, JsonWriter& json) {
  FF_CHECK(document.sample_facts_json.empty() ||
           document.sample_facts_json.size() == document.samples.size());
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String(kSchema);
  json.Key("version").Int(kSchemaVersion);
  json.EndObject();
  json.Key("tool").BeginObject();
  json.Key("name").String(document.tool);
  json.Key("version").String(document.build.version);
  json.Key("commit").String(document.build.commit);
  json.Key("cuda_toolkit").String(document.build.cuda_toolkit);
  json.EndObject();
  json.Key("context").Raw(document.context_json);
  json.Key("samples").BeginArray();
  for (size_t i = 0; i < document.samples.size(); ++i) {
    json.BeginObject();
    if (i < document.sample_facts_json.size() &&
        !document.sample_facts_json[i].empty()) {
      json.Key("facts").Raw(document.sample_facts_json[i]);
    }
    WritePhaseReportKeys(document.samples[i], json);
    json.EndObject();
  }
  json.EndArray();
  json.Key("summary");
  WriteSummary(SummarizePhases(document.samples), json);
  json.EndObject();
}

absl::StatusOr<PhaseDocument> ParsePhaseDocument(absl::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::object root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root);
      error != simdjson::SUCCESS) {
    return absl::DataLossError(absl::StrCat(
        "not a JSON object: ", std::string(simdjson::error_message(error))));
  }
  PhaseDocument document;
  simdjson::dom::array samples;
  if (root["samples"].get(samples) != simdjson::SUCCESS) {
    FF_ASSIGN_OR_RETURN(PhaseReport report, ParsePhaseReport(text));
    document.samples.push_back(std::move(report));
    return document;
  }
  std::string_view name;
  if (root["schema"]["name"].get(name) == simdjson::SUCCESS &&
      name != std::string_view(kSchema.data(), kSchema.size())) {
    return absl::DataLossError(absl::StrCat("schema.name: found '",
                                            std::string(name), "', expected '",
                                            kSchema, "'"));
  }
  if (root["tool"]["name"].get(name) == simdjson::SUCCESS) {
    document.tool = std::string(name);
  }
  simdjson::dom::element context;
  if (root["context"].get(context) == simdjson::SUCCESS) {
    document.context_json = simdjson::minify(context);
  }
  for (simdjson::dom::element sample : samples) {
    absl::StatusOr<PhaseReport> report =
        ParsePhaseReport(simdjson::minify(sample));
    if (!report.ok()) {
      return Annotate(report.status(),
                      absl::StrCat("samples[", document.samples.size(), "]"));
    }
    document.samples.push_back(*std::move(report));
    simdjson::dom::element facts;
    document.sample_facts_json.push_back(sample["facts"].get(facts) ==
                                                 simdjson::SUCCESS
                                             ? simdjson::minify(facts)
                                             : "");
  }
  return document;
}

}  // namespace firstframe
