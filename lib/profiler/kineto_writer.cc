#include "lib/profiler/kineto_writer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_file_writer.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

// GPUs are listed below the processes, as Kineto has them.
constexpr int64_t kGpuSortIndex = 5'000'000;

std::string Quoted(absl::string_view text) {
  std::string json;
  AppendJsonString(text, &json);
  return json;
}

// Calls that put work on a device: arrows start at them.
bool StartsWork(absl::string_view name) {
  return absl::StrContains(name, "Launch") ||
         absl::StrContains(name, "Memcpy") || absl::StrContains(name, "Memset");
}

class Writer {
 public:
  explicit Writer(TraceFileWriter& out) : out_(out) {}

  absl::Status Event(const TraceEvent& event) {
    if (event.phase == 'X' && event.has_time) {
      first_ns_ = std::min(first_ns_, event.time_ns);
      last_ns_ = std::max(last_ns_, event.end_ns());
    }
    if (IsGpuWork(event.kind)) return GpuEvent(event);
    FF_RETURN_IF_ERROR(out_.Event(event.raw));
    const bool is_call = event.kind == TraceEventKind::kRuntime ||
                         event.kind == TraceEventKind::kDriver;
    if (!is_call || !StartsWork(event.name)) return absl::OkStatus();
    return Flow('s', event);
  }

  // The bookkeeping that ends a trace of Kineto's.
  absl::Status Finish(const std::string& process_name) {
    for (const int64_t device : devices_) {
      const auto name = [&](const char* what, const std::string& args) {
        return out_.Event(absl::StrCat(
            "{\"ph\": \"M\", \"name\": \"", what, "\", \"pid\": ", device,
            ", \"tid\": 0, \"args\": {", args, "}}"));
      };
      FF_RETURN_IF_ERROR(name(
          "process_name", absl::StrCat("\"name\": ", Quoted(process_name))));
      FF_RETURN_IF_ERROR(name(
          "process_labels", absl::StrCat("\"labels\": \"GPU ", device, "\"")));
      FF_RETURN_IF_ERROR(
          name("process_sort_index",
               absl::StrCat("\"sort_index\": ", kGpuSortIndex + device)));
    }
    if (last_ns_ < first_ns_) return absl::OkStatus();
    const std::string start = FormatMicroseconds(first_ns_);
    FF_RETURN_IF_ERROR(out_.Event(
        absl::StrCat("{\"ph\": \"X\", \"cat\": \"Trace\", \"ts\": ", start,
                     ", \"dur\": ", FormatMicroseconds(last_ns_ - first_ns_),
                     ", \"pid\": \"Spans\", \"tid\": \"Firstframe\", \"name\": "
                     "\"Firstframe (0)\", \"args\": {\"Op count\": 0}}")));
    FF_RETURN_IF_ERROR(out_.Event(absl::StrCat(
        "{\"name\": \"Iteration Start: Firstframe\", \"ph\": \"i\", \"s\": "
        "\"g\", \"pid\": \"Traces\", \"tid\": \"Trace Firstframe\", \"ts\": ",
        start, "}")));
    return out_.Event(absl::StrCat(
        "{\"name\": \"Record Window End\", \"ph\": \"i\", \"s\": \"g\", "
        "\"pid\": \"\", \"tid\": \"\", \"ts\": ",
        FormatMicroseconds(last_ns_), "}"));
  }

 private:
  // Protobuf annotations are flat; Kineto's grid and block are arrays.
  absl::Status GpuEvent(const TraceEvent& event) {
    devices_.insert(event.pid);
    std::string args, grid, block;
    JsonOddities ignored;
    VisitJsonObject(event.args, &ignored,
                    [&](absl::string_view key, absl::string_view value) {
                      std::string* list = nullptr;
                      if (absl::StartsWith(key, "grid ")) list = &grid;
                      if (absl::StartsWith(key, "block ")) list = &block;
                      if (list != nullptr) {
                        absl::StrAppend(list, list->empty() ? "" : ", ", value);
                      } else {
                        absl::StrAppend(&args, args.empty() ? "" : ", ", "\"",
                                        key, "\": ", value);
                      }
                      return true;
                    });
    if (!grid.empty()) absl::StrAppend(&args, ", \"grid\": [", grid, "]");
    if (!block.empty()) absl::StrAppend(&args, ", \"block\": [", block, "]");
    FF_RETURN_IF_ERROR(out_.Event(absl::StrCat(
        "{\"ph\": \"X\", \"cat\": \"", event.category, "\", \"name\": \"",
        event.name, "\", \"pid\": ", event.pid, ", \"tid\": ", event.tid,
        ", \"ts\": ", FormatMicroseconds(event.time_ns), ", \"dur\": ",
        FormatMicroseconds(event.duration_ns), ", \"args\": {", args, "}}")));
    return Flow('f', event);
  }

  absl::Status Flow(char phase, const TraceEvent& event) {
    const absl::string_view id = FindJsonValue(event.args, "correlation");
    if (id.empty() || id == "0") return absl::OkStatus();
    return out_.Event(absl::StrCat(
        "{\"ph\": \"", absl::string_view(&phase, 1), "\", \"id\": ", id,
        ", \"pid\": ", event.pid, ", \"tid\": ", event.tid,
        ", \"ts\": ", FormatMicroseconds(event.time_ns),
        ", \"cat\": \"ac2g\", \"name\": \"ac2g\"",
        phase == 'f' ? ", \"bp\": \"e\"" : "", "}"));
  }

  TraceFileWriter& out_;
  std::set<int64_t> devices_;
  int64_t first_ns_ = INT64_MAX;
  int64_t last_ns_ = INT64_MIN;
};

}  // namespace

absl::Status WriteKinetoTrace(const std::string& stream_path,
                              const KinetoHeader& header,
                              const std::string& path) {
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(stream_path));
  const TraceMetadata head = {
      {"schemaVersion", "1"},
      {"deviceProperties", header.device_properties},
      {"distributedInfo",
       absl::StrCat("{\"backend\": \"nccl\", \"rank\": ", header.rank,
                    ", \"world_size\": ", header.world_size, "}")},
      {"host_name", Quoted(header.host_name)},
      {"displayTimeUnit", "\"ms\""}};
  FF_ASSIGN_OR_RETURN(auto out, TraceFileWriter::Create(path, head));
  Writer writer(*out);
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) break;
    FF_RETURN_IF_ERROR(writer.Event(event));
  }
  FF_RETURN_IF_ERROR(writer.Finish(header.process_name));
  return out->Finish(
      {{"baseTimeNanoseconds", absl::StrCat(reader->info().base_time_ns)},
       {"traceName", Quoted(path)}});
}

}  // namespace firstframe
