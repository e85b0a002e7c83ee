#include "lib/phase/phase_json.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "simdjson.h"

namespace firstframe {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// About 73 years: sums of a few such times cannot overflow.
constexpr int64_t kMaxTimeNs = int64_t{1} << 61;

// A double that a reader tells from an integer: "2.0", not "2".
void WriteReal(double value, JsonWriter& json) {
  std::string text;
  AppendJsonDouble(value, &text);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  json.Raw(text);
}

void WritePhase(const PhaseRecord& phase, JsonWriter& json) {
  json.BeginObject();
  json.Key("id").Int(phase.id);
  json.Key("parent_id");
  phase.parent_id ? json.Int(*phase.parent_id) : json.Null();
  json.Key("name").String(phase.name);
  json.Key("start_offset_ns").Int(phase.start_offset_ns);
  json.Key("duration_ns").Int(phase.duration_ns);
  const bool ok = phase.status == PhaseStatus::kOk;
  json.Key("status").String(ok ? "ok" : "error");
  if (!ok) json.Key("error").String(phase.error);
  json.Key("lane").Int(phase.lane);
  if (!phase.attributes.empty()) {
    json.Key("attributes").BeginObject();
    for (const PhaseAttribute& attribute : phase.attributes) {
      json.Key(attribute.name);
      if (const auto* integer = std::get_if<int64_t>(&attribute.value)) {
        json.Int(*integer);
      } else if (const auto* real = std::get_if<double>(&attribute.value)) {
        WriteReal(*real, json);
      } else {
        json.String(std::get<std::string>(attribute.value));
      }
    }
    json.EndObject();
  }
  json.EndObject();
}

absl::Status Error(absl::string_view where, absl::string_view found,
                   absl::string_view expected) {
  return absl::DataLossError(
      absl::StrCat(where, ": found ", found, ", expected ", expected));
}

std::string Shown(element value) {
  std::string text = simdjson::minify(value);
  if (text.size() > 40) text = absl::StrCat(text.substr(0, 40), "...");
  return text;
}

// Reads key `key` of `from` into `*out`, which keeps its value when the key is
// absent and `required` is false.
template <typename T>
absl::Status Read(object from, absl::string_view where, const char* key,
                  absl::string_view expected, bool required, T* out) {
  element value;
  if (from[key].get(value) != simdjson::SUCCESS) {
    if (!required) return absl::OkStatus();
    return Error(absl::StrCat(where, key), "no such key", expected);
  }
  T parsed;
  if (value.get(parsed) != simdjson::SUCCESS) {
    return Error(absl::StrCat(where, key), Shown(value), expected);
  }
  *out = parsed;
  return absl::OkStatus();
}

absl::Status ReadInt(object from, absl::string_view where, const char* key,
                     bool required, int64_t* out) {
  return Read(from, where, key, "an integer", required, out);
}

absl::Status ReadTime(object from, absl::string_view where, const char* key,
                      int64_t min_ns, int64_t* out) {
  FF_RETURN_IF_ERROR(ReadInt(from, where, key, true, out));
  if (*out < min_ns || *out > kMaxTimeNs) {
    return Error(absl::StrCat(where, key), absl::StrCat(*out),
                 absl::StrCat("from ", min_ns, " to ", kMaxTimeNs));
  }
  return absl::OkStatus();
}

absl::Status ReadString(object from, absl::string_view where, const char* key,
                        bool required, std::string* out) {
  std::string_view text = *out;
  FF_RETURN_IF_ERROR(Read(from, where, key, "a string", required, &text));
  *out = std::string(text);
  return absl::OkStatus();
}

absl::StatusOr<PhaseAttribute> ParseAttribute(absl::string_view where,
                                              std::string_view name,
                                              element value) {
  PhaseAttribute attribute = {.name = std::string(name)};
  if (value.is_int64()) {
    attribute.value = value.get_int64().value_unsafe();
  } else if (value.is_double()) {
    attribute.value = value.get_double().value_unsafe();
  } else if (value.is_string()) {
    attribute.value = std::string(value.get_string().value_unsafe());
  } else if (value.is_null()) {
    attribute.value = std::numeric_limits<double>::quiet_NaN();
  } else {
    return Error(absl::StrCat(where, attribute.name), Shown(value),
                 "a number, a string or null");
  }
  return attribute;
}

absl::StatusOr<PhaseRecord> ParsePhase(object from, absl::string_view where,
                                       size_t num_lanes) {
  PhaseRecord phase;
  FF_RETURN_IF_ERROR(ReadInt(from, where, "id", true, &phase.id));
  element parent;
  if (from["parent_id"].get(parent) == simdjson::SUCCESS && !parent.is_null()) {
    phase.parent_id = 0;
    FF_RETURN_IF_ERROR(
        ReadInt(from, where, "parent_id", true, &*phase.parent_id));
  }
  FF_RETURN_IF_ERROR(ReadString(from, where, "name", true, &phase.name));
  FF_RETURN_IF_ERROR(ReadTime(from, where, "start_offset_ns", -kMaxTimeNs,
                              &phase.start_offset_ns));
  FF_RETURN_IF_ERROR(
      ReadTime(from, where, "duration_ns", 0, &phase.duration_ns));
  std::string status;
  FF_RETURN_IF_ERROR(ReadString(from, where, "status", true, &status));
  if (status != "ok" && status != "error") {
    return Error(absl::StrCat(where, "status"), absl::StrCat("'", status, "'"),
                 "'ok' or 'error'");
  }
  if (status == "error") {
    phase.status = PhaseStatus::kError;
    FF_RETURN_IF_ERROR(ReadString(from, where, "error", false, &phase.error));
  }
  int64_t lane = 0;
  FF_RETURN_IF_ERROR(ReadInt(from, where, "lane", false, &lane));
  if (lane < 0 || static_cast<size_t>(lane) >= num_lanes) {
    return Error(absl::StrCat(where, "lane"), absl::StrCat(lane),
                 absl::StrCat("one of ", num_lanes, " lanes"));
  }
  phase.lane = static_cast<int32_t>(lane);
  object attributes;
  if (from["attributes"].get(attributes) == simdjson::SUCCESS) {
    const std::string path = absl::StrCat(where, "attributes.");
    for (const auto& [name, value] : attributes) {
      FF_ASSIGN_OR_RETURN(PhaseAttribute attribute,
                          ParseAttribute(path, name, value));
      phase.attributes.push_back(std::move(attribute));
    }
  }
  return phase;
}

absl::Status ParseLanes(object root, PhaseReport* report) {
  simdjson::dom::array lanes;
  if (root["lanes"].get(lanes) != simdjson::SUCCESS) {
    report->lanes.push_back({.name = "main"});
    return absl::OkStatus();
  }
  for (element entry : lanes) {
    const std::string where =
        absl::StrCat("lanes[", report->lanes.size(), "].");
    object from;
    if (entry.get(from) != simdjson::SUCCESS) {
      return Error(where, Shown(entry), "an object");
    }
    PhaseLane lane;
    FF_RETURN_IF_ERROR(ReadString(from, where, "name", true, &lane.name));
    FF_RETURN_IF_ERROR(ReadInt(from, where, "pid", false, &lane.pid));
    FF_RETURN_IF_ERROR(ReadInt(from, where, "tid", false, &lane.tid));
    report->lanes.push_back(std::move(lane));
  }
  return absl::OkStatus();
}

absl::Status CheckIds(const PhaseReport& report) {
  absl::flat_hash_set<int64_t> ids;
  for (const PhaseRecord& phase : report.phases) {
    if (!ids.insert(phase.id).second) {
      return Error("phases", absl::StrCat("two phases of id ", phase.id),
                   "ids that differ");
    }
  }
  for (const PhaseRecord& phase : report.phases) {
    if (phase.parent_id && !ids.contains(*phase.parent_id)) {
      return Error(absl::StrCat("phase ", phase.id, " parent_id"),
                   absl::StrCat(*phase.parent_id), "the id of a phase");
    }
  }
  return absl::OkStatus();
}

}  // namespace

void WritePhaseReportKeys(const PhaseReport& report, JsonWriter& json) {
  json.Key("recording_duration_ns").Int(report.recording_duration_ns);
  json.Key("lanes").BeginArray();
  for (const PhaseLane& lane : report.lanes) {
    json.BeginObject();
    json.Key("name").String(lane.name);
    json.Key("pid").Int(lane.pid);
    json.Key("tid").Int(lane.tid);
    json.EndObject();
  }
  json.EndArray();
  json.Key("phases").BeginArray();
  for (const PhaseRecord& phase : report.phases) WritePhase(phase, json);
  json.EndArray();
}

absl::StatusOr<PhaseReport> ParsePhaseReport(absl::string_view json) {
  simdjson::dom::parser parser;
  element document;
  if (const auto error = parser.parse(json.data(), json.size()).get(document);
      error != simdjson::SUCCESS) {
    return absl::DataLossError(absl::StrCat(
        "not JSON: ", std::string(simdjson::error_message(error))));
  }
  object root;
  if (document.get(root) != simdjson::SUCCESS) {
    return Error("phase report", Shown(document), "an object");
  }
  PhaseReport report;
  FF_RETURN_IF_ERROR(ReadTime(root, "", "recording_duration_ns", 0,
                              &report.recording_duration_ns));
  FF_RETURN_IF_ERROR(ParseLanes(root, &report));
  simdjson::dom::array phases;
  FF_RETURN_IF_ERROR(Read(root, "", "phases", "an array", true, &phases));
  for (element entry : phases) {
    const std::string where =
        absl::StrCat("phases[", report.phases.size(), "].");
    object from;
    if (entry.get(from) != simdjson::SUCCESS) {
      return Error(where, Shown(entry), "an object");
    }
    FF_ASSIGN_OR_RETURN(PhaseRecord phase,
                        ParsePhase(from, where, report.lanes.size()));
    report.phases.push_back(std::move(phase));
  }
  FF_RETURN_IF_ERROR(CheckIds(report));
  return report;
}

}  // namespace firstframe
