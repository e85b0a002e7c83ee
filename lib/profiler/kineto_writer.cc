#include "lib/profiler/kineto_writer.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "lib/base/glob.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/profiler/gpu_annotations.h"
#include "lib/regions/region.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_event.h"
#include "lib/trace/trace_file_writer.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

// GPUs are listed below the processes, as Kineto has them.
constexpr int64_t kGpuSortIndex = 5'000'000;
constexpr absl::string_view kStepPrefix = "ProfilerStep#";

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

// A member that is a whole number; 0: it is not there.
int64_t Number(absl::string_view args, absl::string_view key) {
  int64_t number = 0;
  static_cast<void>(absl::SimpleAtoi(FindJsonValue(args, key), &number));
  return number;
}

class Writer {
 public:
  Writer(TraceFileWriter& out, absl::string_view steps)
      : out_(out), steps_(absl::StrSplit(steps, ',', absl::SkipWhitespace())) {}

  absl::Status Event(const TraceEvent& event) {
    if (event.phase == 'X' && event.has_time) {
      first_ns_ = std::min(first_ns_, event.time_ns);
      last_ns_ = std::max(last_ns_, event.end_ns());
    }
    if (IsGpuWork(event.kind)) return GpuEvent(event);
    if (event.kind == TraceEventKind::kUserAnnotation && event.phase == 'X') {
      FF_RETURN_IF_ERROR(Annotation(event));
    }
    if (event.kind == TraceEventKind::kGpuUserAnnotation) {
      devices_.insert(event.pid);
    }
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
    if (!has_steps_) FF_RETURN_IF_ERROR(WriteSteps());
    FF_RETURN_IF_ERROR(annotations_.Write(
        /*with_steps=*/!has_steps_,
        [&](const std::string& event) { return out_.Event(event); }));
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
  // What a region's row above the kernels is called, and whether it is a step.
  absl::Status Annotation(const TraceEvent& event) {
    if (absl::StartsWith(event.name, kStepPrefix)) has_steps_ = true;
    const int64_t id = Number(event.args, "External id");
    if (id == 0) return absl::OkStatus();
    const bool is_step =
        std::any_of(steps_.begin(), steps_.end(),
                    [name = ShortRegionName(DecodeJsonString(event.name))](
                        const std::string& step) {
                      return GlobMatch(absl::StripAsciiWhitespace(step), name);
                    });
    annotations_.AddRegion(
        id, event.name,
        is_step ? static_cast<int64_t>(candidates_.size()) : -1);
    if (is_step) {
      candidates_.push_back(
          {id, event.pid, event.tid, event.time_ns, event.duration_ns});
    }
    return absl::OkStatus();
  }

  // Steps are written last: a program's own may end after regions in them.
  absl::Status WriteSteps() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Step& step = candidates_[i];
      // A little longer than the region, whose parent it then is.
      FF_RETURN_IF_ERROR(out_.Event(absl::StrCat(
          "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"",
          kStepPrefix, i, "\", \"pid\": ", step.pid, ", \"tid\": ", step.tid,
          ", \"ts\": ", FormatMicroseconds(step.time_ns - 1),
          ", \"dur\": ", FormatMicroseconds(step.duration_ns + 2),
          ", \"args\": {\"External id\": ", step.id, "}}")));
    }
    return absl::OkStatus();
  }

  // Protobuf annotations are flat; Kineto's grid and block are arrays.
  absl::Status GpuEvent(const TraceEvent& event) {
    devices_.insert(event.pid);
    if (const int64_t id = Number(event.args, "External id"); id != 0) {
      annotations_.AddWork(id, event.pid, event.tid, event.time_ns,
                           event.end_ns());
    }
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
  const std::vector<std::string> steps_;
  bool has_steps_ = false;  // the program's own
  struct Step {
    int64_t id, pid, tid, time_ns, duration_ns;
  };
  std::vector<Step> candidates_;
  GpuAnnotations annotations_;
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
  Writer writer(*out, header.steps);
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
