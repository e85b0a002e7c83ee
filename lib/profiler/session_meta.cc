#include <limits.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/output_file.h"
#include "lib/profiler/device_properties.h"
#include "lib/profiler/session.h"
#include "lib/profiler/session_identity.h"

namespace firstframe {

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof(name) - 1);
  return name[0] != '\0' ? name : "localhost";
}

std::string ProcessName() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

void Session::WriteMeta(bool finished) {
  const TraceStreamCounts counts = stream_->counts();
  const CuptiCollector* const cupti = armed_.load();
  if (cupti != nullptr && device_properties_.empty()) {
    device_properties_ = DevicePropertiesJson();
  }
  std::string text;
  JsonWriter json(&text, JsonWriter::Style::kPretty);
  json.BeginObject();
  json.Key("schema").BeginObject();
  json.Key("name").String("firstframe.profile");
  json.Key("version").Int(1);
  json.EndObject();
  json.Key("finished").Bool(finished);
  json.Key("pid").Int(::getpid());
  json.Key("parent_pid").Int(::getppid());
  json.Key("host_name").String(HostName());
  json.Key("process_name").String(ProcessName());
  json.Key("rank").Int(options_.rank);
  json.Key("world_size").Int(options_.world_size);
  json.Key("duration_ns").Int(TickClock::MonotonicNs() - start_ns_);
  json.Key("setting").String(options_.all ? "all"
                                          : options_.regions.ToString());
  absl::MutexLock lock(&mutex_);
  json.Key("regions").BeginArray();
  for (const auto& [name, totals] : totals_) {
    json.BeginObject();
    json.Key("name").String(name);
    json.Key("count").Int(totals.count);
    json.Key("total_ns").Int(totals.total_ns);
    if (totals.event_count > 0) {
      json.Key("cuda_event_count").Int(totals.event_count);
      json.Key("cuda_event_ns").Int(totals.event_ns);
    }
    json.EndObject();
  }
  json.EndArray();
  json.Key("counts").BeginObject();
  json.Key("spans").Int(counts.span_count);
  json.Key("api_calls").Int(counts.api_count);
  json.Key("kernels").Int(counts.kernel_count);
  json.Key("copies").Int(counts.copy_count);
  json.Key("synchronizations").Int(counts.sync_count);
  json.Key("outside_regions").Int(counts.outside_count);
  json.EndObject();
  json.Key("dropped").BeginObject();
  json.Key("spans").Int(spans_.dropped());
  json.Key("cupti_records").Int(cupti != nullptr ? cupti->dropped() : 0);
  json.Key("cuda_events")
      .Int(event_timer_ != nullptr ? event_timer_->dropped() : 0);
  json.Key("over_byte_budget").Int(counts.over_budget_count);
  json.EndObject();
  json.Key("overhead").BeginObject();
  json.Key("span_cost_ns").Double(span_cost_ns_);
  json.Key("spans_ns")
      .Double(span_cost_ns_ *
              static_cast<double>(counts.span_count + counts.api_seen_count));
  json.Key("cupti_ns").Int(counts.cupti_overhead_ns);
  json.Key("enable_ns").Int(enable_ns_);
  json.Key("worker_cpu_ns").Int(worker_cpu_ns_);
  json.EndObject();
  json.Key("cupti").String(cupti_state_);
  json.Key("device_properties")
      .Raw(device_properties_.empty() ? "[]" : device_properties_);
  json.Key("messages").BeginArray();
  for (const std::string& message : messages_) json.String(message);
  json.EndArray();
  json.EndObject();
  text += "\n";
  static_cast<void>(WriteOutputFile(absl::StrCat(stem_, ".meta.json"), text));
}

}  // namespace firstframe
