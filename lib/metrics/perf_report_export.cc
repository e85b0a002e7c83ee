// Forms for other programs: CSV, Prometheus, HTML.

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "lib/base/utf8.h"
#include "lib/html/page.h"
#include "lib/metrics/perf_report_assets.h"
#include "lib/metrics/perf_report_text.h"

namespace firstframe {
namespace {

// RFC 4180.
std::string CsvField(absl::string_view text) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    return std::string(text);
  }
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Number(double value) {
  std::string text;
  AppendJsonDouble(value, &text);
  return text == "null" ? "" : text;
}

std::string Number(const std::optional<double>& value) {
  return value ? Number(*value) : "";
}

// "name=seconds;..." of stages or phases, which differ from record to record.
template <typename Items, typename Value>
std::string Parts(const Items& items, const Value& value) {
  return absl::StrJoin(items, ";", [&](std::string* out, const auto& item) {
    absl::StrAppend(out, item.first, "=", Number(value(item.second)));
  });
}

std::string Row(const std::vector<std::string>& fields) {
  return absl::StrJoin(fields, ",",
                       [](std::string* out, const auto& field) {
                         absl::StrAppend(out, CsvField(field));
                       }) +
         "\n";
}

std::string Bytes(const std::optional<MemoryPeaks>& peaks, bool is_alloc) {
  if (!peaks) return "";
  return absl::StrCat(is_alloc ? peaks->alloc_bytes : peaks->reserved_bytes);
}

class Exposition {
 public:
  // `suffix` is for samples that belong to a family of another name: "_sum" and
  // "_count" of a summary, which must stand with it.
  void Add(absl::string_view name, absl::string_view type,
           absl::string_view help, absl::string_view labels, double value,
           absl::string_view suffix = "") {
    if (described_.insert(std::string(name)).second) {
      absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name,
                      " ", type, "\n");
    }
    absl::StrAppend(&text_, name, suffix,
                    labels.empty() ? "" : absl::StrCat("{", labels, "}"), " ",
                    Number(value).empty() ? "NaN" : Number(value), "\n");
  }
  void AddOptional(absl::string_view name, absl::string_view help,
                   absl::string_view labels,
                   const std::optional<double>& value) {
    if (value) Add(name, "gauge", help, labels, *value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
  std::set<std::string> described_;
};

std::string Label(absl::string_view name, absl::string_view value) {
  return absl::StrCat(
      name, "=\"",
      absl::StrReplaceAll(ToValidUtf8(value),
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

void ExposeRequests(const PerfReport::Requests& requests, Exposition& out) {
  const Distribution& e2e = requests.e2e_s;
  out.Add("videox_perf_requests_total", "counter", "Measured requests.", "",
          static_cast<double>(e2e.count));
  out.Add("videox_perf_warmup_requests_total", "counter",
          "Requests left out as warm-up.", "",
          static_cast<double>(requests.warmup));
  constexpr absl::string_view kSeconds = "videox_perf_request_seconds";
  constexpr absl::string_view kHelp = "End-to-end time of requests.";
  for (const auto& [quantile, value] :
       {std::pair<const char*, double>{"0.5", e2e.p50},
        {"0.95", e2e.p95},
        {"0.99", e2e.p99}}) {
    out.Add(kSeconds, "summary", kHelp, Label("quantile", quantile), value);
  }
  absl::string_view none;
  out.Add(kSeconds, "summary", kHelp, none, requests.total_s, "_sum");
  out.Add(kSeconds, "summary", kHelp, none, static_cast<double>(e2e.count),
          "_count");
  for (const PerfReport::Stage& stage : requests.stages) {
    const std::string label = Label("stage", stage.name);
    out.Add("videox_perf_stage_seconds_total", "counter",
            "Time in a component.", label, stage.total_s);
  }
  for (const PerfReport::Stage& stage : requests.stages) {
    out.Add("videox_perf_stage_calls_total", "counter", "Calls of a component.",
            Label("stage", stage.name), static_cast<double>(stage.calls));
  }
  out.AddOptional("videox_perf_request_tflops",
                  "Transformer rate, 1e12 operations a second.", none,
                  requests.dit.tflops);
  out.AddOptional("videox_perf_request_mfu_ratio",
                  "Transformer rate over the peak.", none, requests.dit.mfu);
  if (requests.peaks) {
    out.Add("videox_perf_request_peak_alloc_bytes", "gauge",
            "Largest peak of allocated device memory.", none,
            static_cast<double>(requests.peaks->alloc_bytes));
  }
}

void ExposeTraining(const TrainingSummary& training, Exposition& out) {
  out.Add("videox_perf_steps_total", "counter", "Measured training steps.", "",
          static_cast<double>(training.steps));
  constexpr absl::string_view kSeconds = "videox_perf_step_seconds";
  constexpr absl::string_view kHelp =
      "Time of training steps, pooled from windows.";
  for (const auto& [quantile, value] :
       {std::pair<const char*, double>{"0.5", training.step.p50.value_s},
        {"0.95", training.step.p95.value_s}}) {
    out.Add(kSeconds, "summary", kHelp, Label("quantile", quantile), value);
  }
  out.Add(kSeconds, "summary", kHelp, "", training.total_s, "_sum");
  out.Add(kSeconds, "summary", kHelp, "", static_cast<double>(training.steps),
          "_count");
  for (const auto& [name, seconds] : training.phases_s) {
    out.Add("videox_perf_phase_seconds", "gauge", "Mean time a step.",
            Label("phase", name), seconds);
  }
  out.Add("videox_perf_samples_per_second", "gauge", "Training throughput.", "",
          training.samples_per_s);
  out.AddOptional("videox_perf_train_mfu_ratio", "Model FLOPs over the peak.",
                  "", training.dit.mfu);
  out.AddOptional("videox_perf_train_hfu_ratio",
                  "Hardware FLOPs over the peak.", "", training.dit.hfu);
}

}  // namespace

std::string PerfPrometheus(const PerfReport& report) {
  Exposition out;
  if (report.has_requests()) ExposeRequests(report.SummarizeRequests(), out);
  if (report.has_training()) ExposeTraining(report.SummarizeTraining(), out);
  return out.Take();
}

std::string PerfCsvHeader() {
  return "kind,ts,rank,world_size,req,warmup,e2e_s,step_first,step_last,steps,"
         "step_s_p50,step_s_p95,parts_s,tflops,mfu,hfu,samples_per_s,"
         "peak_alloc_bytes,peak_reserved_bytes,device\n";
}

std::string PerfCsvRow(const RequestRecord& r) {
  const auto seconds = [](const StageSummary& s) { return s.total_ms / 1e3; };
  return Row({"request",
              Number(r.ts),
              absl::StrCat(r.rank),
              absl::StrCat(r.world_size),
              absl::StrCat(r.req),
              r.warmup ? "true" : "false",
              Number(r.e2e_s),
              "",
              "",
              "",
              "",
              "",
              Parts(r.stages, seconds),
              r.dit ? Number(r.dit->tflops) : "",
              r.dit ? Number(r.dit->mfu) : "",
              "",
              "",
              Bytes(r.peaks, true),
              Bytes(r.peaks, false),
              r.device});
}

std::string PerfCsvRow(const TrainWindowRecord& w) {
  const auto same = [](double seconds) { return seconds; };
  const bool is_priced = w.throughput && w.throughput->priced;
  return Row({"train_window",
              Number(w.ts),
              absl::StrCat(w.rank),
              absl::StrCat(w.world_size),
              "",
              "",
              "",
              absl::StrCat(w.step_first),
              absl::StrCat(w.step_last),
              absl::StrCat(w.steps),
              Number(w.step_s_p50),
              Number(w.step_s_p95),
              Parts(w.phases_s, same),
              is_priced ? Number(w.throughput->priced->tflops) : "",
              is_priced ? Number(w.throughput->priced->mfu) : "",
              is_priced ? Number(w.throughput->priced->hfu) : "",
              w.throughput ? Number(w.throughput->samples_per_s) : "",
              Bytes(w.peaks, true),
              Bytes(w.peaks, false),
              w.device});
}

std::string PerfHtml(const PerfInputs& inputs, const PerfReport& report) {
  std::string data;
  JsonWriter json(&data);
  json.BeginObject();
  WritePerfJson(inputs, report, json);
  json.Key("request_series").BeginArray();
  for (const RequestRecord& record : report.requests()) {
    json.BeginObject();
    json.Key("rank").Int(record.rank);
    json.Key("req").Int(record.req);
    json.Key("e2e_s").Double(record.e2e_s);
    json.Key("stages").BeginObject();
    for (const auto& [name, stage] : record.stages) {
      json.Key(name).Double(stage.total_ms / 1e3);
    }
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
  json.Key("window_series").BeginArray();
  for (const TrainWindowRecord& window : report.windows()) {
    json.BeginObject();
    json.Key("rank").Int(window.rank);
    json.Key("step_first").Int(window.step_first);
    json.Key("step_last").Int(window.step_last);
    json.Key("p50_s").Double(window.step_s_p50);
    json.Key("p95_s").Double(window.step_s_p95);
    json.Key("phases_s").BeginObject();
    for (const auto& [name, seconds] : window.phases_s) {
      json.Key(name).Double(seconds);
    }
    json.EndObject();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  HtmlPageParts parts;
  parts.title = "VIDEOX_PERF report";
  const std::string files = absl::StrJoin(inputs.files, ", ");
  parts.subtitle = files;
  parts.data_json = data;
  parts.script = kPerfReportJs;
  const std::string fallback = absl::StrJoin(report.SummaryLines(), "\n");
  parts.fallback = fallback;
  return RenderHtmlPage(parts);
}

}  // namespace firstframe
