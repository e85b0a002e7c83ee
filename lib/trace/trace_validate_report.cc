#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/edit_distance.h"
#include "lib/base/json_writer.h"
#include "lib/trace/trace_validate.h"

namespace firstframe {

const char* TraceConsumerName(TraceConsumer consumer) {
  switch (consumer) {
    case TraceConsumer::kPerfetto:
      return "perfetto";
    case TraceConsumer::kHta:
      return "hta";
    case TraceConsumer::kTensorBoard:
      return "tensorboard";
  }
  return "unknown";
}

absl::StatusOr<std::vector<TraceConsumer>> ParseTraceConsumers(
    absl::string_view list) {
  std::vector<TraceConsumer> consumers;
  for (absl::string_view name : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    bool known = false;
    for (const TraceConsumer consumer :
         {TraceConsumer::kPerfetto, TraceConsumer::kHta,
          TraceConsumer::kTensorBoard}) {
      if (name == TraceConsumerName(consumer)) {
        consumers.push_back(consumer);
        known = true;
      }
    }
    if (known) continue;
    const auto nearest = NearestName(name, {"perfetto", "hta", "tensorboard"});
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is none of perfetto, hta, tensorboard",
        nearest.has_value() ? absl::StrCat("; did you mean ", *nearest, "?")
                            : ""));
  }
  if (consumers.empty()) {
    return absl::InvalidArgumentError(
        "expected some of perfetto, hta, tensorboard");
  }
  return consumers;
}

void WriteValidationText(const TraceValidation& validation, std::ostream& out) {
  for (const TraceProblem& problem : validation.problems) {
    out << validation.path << ": " << TraceConsumerName(problem.consumer)
        << ": " << (problem.is_error ? "error" : "warning") << ": "
        << problem.message;
    if (problem.count > 1) out << " (" << problem.count << " times)";
    if (problem.first_offset >= 0) {
      out << ", first at byte " << problem.first_offset;
    }
    out << " [" << problem.rule << "]\n";
  }
  if (validation.problems.empty()) out << validation.path << ": valid\n";
}

void WriteValidationJsonl(const TraceValidation& validation,
                          const std::vector<TraceConsumer>& consumers,
                          std::ostream& out) {
  std::string text;
  for (const TraceProblem& problem : validation.problems) {
    JsonWriter json(&text);
    json.BeginObject();
    json.Key("kind").String("problem");
    json.Key("path").String(validation.path);
    json.Key("consumer").String(TraceConsumerName(problem.consumer));
    json.Key("severity").String(problem.is_error ? "error" : "warning");
    json.Key("rule").String(problem.rule);
    json.Key("message").String(problem.message);
    json.Key("count").Int(problem.count);
    json.Key("first_offset");
    if (problem.first_offset < 0) {
      json.Null();
    } else {
      json.Int(problem.first_offset);
    }
    json.EndObject();
    text += "\n";
  }
  JsonWriter json(&text);
  json.BeginObject();
  json.Key("kind").String("validation");
  json.Key("path").String(validation.path);
  json.Key("consumers").BeginArray();
  for (const TraceConsumer consumer : consumers) {
    json.String(TraceConsumerName(consumer));
  }
  json.EndArray();
  json.Key("valid").Bool(!validation.HasErrors());
  json.EndObject();
  text += "\n";
  out << text;
}

}  // namespace firstframe
