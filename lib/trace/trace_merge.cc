#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/json_writer.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_rewrite.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/read_twice.h"
#include "lib/trace/trace_file_writer.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_start.h"
#include "lib/trace/trace_transform.h"

namespace firstframe {
namespace {

// Ids of input i carry i in the bits from here on; 33 bits hold any CUPTI
// correlation or Kineto id, and the sum stays below 2^53 for 2^20 inputs.
constexpr int kIdBits = 33;
// Perfetto and the trace format know process ids of 32 bits.
constexpr size_t kMaxInputs = (uint64_t{1} << 32) / kMergePidStride - 1;

struct Input {
  std::string path;
  int64_t base_ns = 0;   // epoch of time 0
  int64_t first_ns = 0;  // of its first event, relative to base
  int64_t rank = -1;
  TraceFileInfo info;
};

absl::StatusOr<Input> Survey(const std::string& path) {
  FF_RETURN_IF_ERROR(CheckReadableTwice(path));
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(path));
  Input input;
  input.path = path;
  FF_ASSIGN_OR_RETURN(input.first_ns, FindTraceStart(*reader));
  input.info = reader->info();
  input.base_ns = input.info.base_time_ns;
  input.rank = input.info.Rank();
  return input;
}

class Merger {
 public:
  Merger(int64_t index, const Input& input, int64_t shift_ns)
      : index_(index), input_(input), shift_ns_(shift_ns) {}

  absl::Status Copy(TraceFileWriter& writer) {
    FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input_.path));
    std::string json;
    for (TraceEvent event;;) {
      FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
      if (!more) break;
      // Our own labels and order take the place of the input's.
      if (event.phase == 'M' && (event.name == "process_labels" ||
                                 event.name == "process_sort_index")) {
        continue;
      }
      if (!event.pid_is_text()) NotePid(event.pid);
      json.clear();
      AppendEditedJson(
          event.raw,
          [&](absl::string_view path, absl::string_view raw) {
            return Edit(event, path, raw);
          },
          &json);
      FF_RETURN_IF_ERROR(writer.Event(json));
    }
    return WriteLabels(writer);
  }

 private:
  static JsonEdit Replace(std::string json) {
    return {.action = JsonEdit::Action::kReplace, .json = std::move(json)};
  }

  void NotePid(int64_t pid) { pids_.try_emplace(pid, NewPid(pid)); }

  // Ids that fit keep their digits; others (negative, huge) get free ones.
  int64_t NewPid(int64_t pid) {
    const int64_t low = kMergePidStride * (index_ + 1);
    if (pid >= 0 && pid < kMergePidStride - 100'000) return low + pid;
    return low + kMergePidStride - 1 - next_odd_pid_++;
  }

  JsonEdit Edit(const TraceEvent& event, absl::string_view path,
                absl::string_view raw) {
    if (path == "pid") {
      if (!event.pid_is_text()) {
        return Replace(absl::StrCat(pids_.at(event.pid)));
      }
      std::string text;
      AppendJsonString(
          absl::StrCat(DecodeJsonString(event.pid_text), " ", Label()), &text);
      return Replace(text);
    }
    if (path == "ts" && event.has_time) {
      return Replace(FormatMicroseconds(event.time_ns + shift_ns_));
    }
    const bool is_id = path == "id" || path == "args.correlation" ||
                       path == "args.External id" || path == "args.external id";
    if (is_id) {
      uint64_t id = 0;
      if (absl::SimpleAtoi(UnquoteJson(raw), &id) && id < uint64_t{1}
                                                              << kIdBits) {
        return Replace(
            absl::StrCat(id | static_cast<uint64_t>(index_) << kIdBits));
      }
      if (path == "id") {
        std::string text;
        AppendJsonString(absl::StrCat(index_, ":", UnquoteJson(raw)), &text);
        return Replace(text);
      }
    }
    return {};
  }

  std::string Label() const {
    return input_.rank >= 0 ? absl::StrCat("rank ", input_.rank)
                            : absl::StrCat("trace ", index_);
  }

  absl::Status WriteLabels(TraceFileWriter& writer) {
    int64_t order = 0;
    for (const auto& [pid, new_pid] : pids_) {
      std::string label;
      AppendJsonString(Label(), &label);
      FF_RETURN_IF_ERROR(writer.Event(absl::StrCat(
          "{\"ph\": \"M\", \"name\": \"process_labels\", \"pid\": ", new_pid,
          ", \"tid\": 0, \"args\": {\"labels\": ", label, "}}")));
      FF_RETURN_IF_ERROR(writer.Event(absl::StrCat(
          "{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": ",
          new_pid, ", \"tid\": 0, \"args\": {\"sort_index\": ",
          index_ * 1000 + order++, "}}")));
    }
    return absl::OkStatus();
  }

  const int64_t index_;
  const Input& input_;
  const int64_t shift_ns_;
  std::map<int64_t, int64_t> pids_;
  int64_t next_odd_pid_ = 0;
};

// What the merged file says it is made of.
std::string Provenance(const std::vector<Input>& inputs,
                       const std::vector<int64_t>& shifts) {
  std::string text;
  JsonWriter json(&text);
  json.BeginArray();
  for (size_t i = 0; i < inputs.size(); ++i) {
    json.BeginObject();
    json.Key("index").Int(static_cast<int64_t>(i));
    json.Key("path").String(inputs[i].path);
    json.Key("rank");
    if (inputs[i].rank < 0) {
      json.Null();
    } else {
      json.Int(inputs[i].rank);
    }
    json.Key("first_pid").Int(kMergePidStride * static_cast<int64_t>(i + 1));
    json.Key("shift_ns").Int(shifts[i]);
    json.EndObject();
  }
  json.EndArray();
  return text;
}

}  // namespace

absl::StatusOr<WrittenTrace> MergeTraces(const std::vector<std::string>& inputs,
                                         const std::string& output,
                                         TraceAlign align) {
  if (inputs.size() > kMaxInputs) {
    return absl::InvalidArgumentError(absl::StrCat(
        inputs.size(), " traces; at most ", kMaxInputs, " can be merged"));
  }
  std::vector<Input> surveyed;
  int64_t base = INT64_MAX;
  for (const std::string& path : inputs) {
    FF_ASSIGN_OR_RETURN(Input input, Survey(path));
    base = std::min(base, input.base_ns);
    surveyed.push_back(std::move(input));
  }
  std::vector<int64_t> shifts;
  for (const Input& input : surveyed) {
    shifts.push_back(align == TraceAlign::kClock
                         ? input.base_ns - base
                         : surveyed[0].base_ns - base + surveyed[0].first_ns -
                               input.first_ns);
  }
  TraceMetadata head = {{"schemaVersion", "1"}};
  for (const char* key : {"deviceProperties", "distributedInfo"}) {
    const absl::string_view raw = surveyed[0].info.Metadata(key);
    if (raw.empty()) continue;
    std::string value;
    AppendCleanJson(raw, &value);
    head.emplace_back(key, std::move(value));
  }
  head.emplace_back("mergedFrom", Provenance(surveyed, shifts));
  head.emplace_back("displayTimeUnit", "\"ms\"");
  head.emplace_back("baseTimeNanoseconds", absl::StrCat(base));
  FF_ASSIGN_OR_RETURN(auto writer, TraceFileWriter::Create(output, head));
  for (size_t i = 0; i < surveyed.size(); ++i) {
    FF_RETURN_IF_ERROR(
        Merger(static_cast<int64_t>(i), surveyed[i], shifts[i]).Copy(*writer));
  }
  FF_RETURN_IF_ERROR(writer->Finish({}));
  return WrittenTrace{output, writer->event_count()};
}

}  // namespace firstframe
