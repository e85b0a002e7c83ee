#include "lib/trace/trace_validate.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/spill_sorter.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

constexpr size_t kSortBytes = 12 << 20;
// Microseconds since the epoch in a double have steps of 0.25 us.
constexpr int64_t kEpochTimesNs = 1'000'000'000'000'000'000;
constexpr int64_t kTensorBoardWindowNs = int64_t{24} * 3600 * 1'000'000;
constexpr uint64_t kBlobBytes = uint64_t{4} << 30;
constexpr uint64_t kWasmBytes = uint64_t{2} << 30;

// Slices on one track of Perfetto's.
struct TrackSlice {
  int64_t start;
  int64_t end;
  uint64_t track;
  uint64_t offset;
};
struct TrackOrder {
  bool operator()(const TrackSlice& a, const TrackSlice& b) const {
    return std::tie(a.track, a.start, b.end) <
           std::tie(b.track, b.start, a.end);
  }
};

class Validator {
 public:
  Validator(const std::string& path, const TraceValidateOptions& options)
      : options_(options), slices_(kSortBytes, options.temporary_folder) {
    result_.path = path;
  }

  absl::StatusOr<TraceValidation> Run() {
    FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(result_.path));
    for (TraceEvent event;;) {
      FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
      if (!more) break;
      FF_RETURN_IF_ERROR(Look(event));
    }
    const TraceFileInfo& info = reader->info();
    result_.rank = info.Rank();
    for (const TraceConsumer consumer : options_.consumers) {
      switch (consumer) {
        case TraceConsumer::kPerfetto:
          FF_RETURN_IF_ERROR(Perfetto(info));
          break;
        case TraceConsumer::kHta:
          Hta(info);
          break;
        case TraceConsumer::kTensorBoard:
          TensorBoard(info);
          break;
      }
    }
    std::stable_sort(result_.problems.begin(), result_.problems.end(),
                     [](const TraceProblem& a, const TraceProblem& b) {
                       return a.is_error > b.is_error;
                     });
    return std::move(result_);
  }

 private:
  struct Seen {
    int64_t count = 0;
    int64_t first_offset = -1;

    void At(uint64_t offset) {
      if (count++ == 0) first_offset = static_cast<int64_t>(offset);
    }
  };

  absl::Status Look(const TraceEvent& event);
  void LookAtArgs(const TraceEvent& event);
  void LookAtNumbers(const TraceEvent& event);
  absl::Status Perfetto(const TraceFileInfo& info);
  absl::Status CountOverlaps(Seen* overlaps);
  void Hta(const TraceFileInfo& info);
  void TensorBoard(const TraceFileInfo& info);

  void Add(TraceConsumer consumer, bool is_error, const char* rule,
           std::string message, const Seen& seen = {1, -1}) {
    if (seen.count == 0) return;
    result_.problems.push_back({consumer, is_error, rule, std::move(message),
                                seen.count, seen.first_offset});
  }
  void AddOddity(TraceConsumer consumer, bool is_error,
                 const TraceFileInfo& info, TraceOddity oddity,
                 std::string message) {
    const TraceOddityNote& note = info.oddity(oddity);
    Add(consumer, is_error, TraceOddityName(oddity), std::move(message),
        {note.count, static_cast<int64_t>(note.first_offset)});
  }

  const TraceValidateOptions& options_;
  TraceValidation result_;
  SpillSorter<TrackSlice, TrackOrder> slices_;
  int64_t events_ = 0;
  Seen bad_time_, bad_duration_, no_duration_, negative_pid_, wide_tid_,
      negative_time_, epoch_time_, args_not_object_, bare_word_in_args_,
      no_name_, no_category_, host_with_stream_, stream_zero_, submicrosecond_,
      linked_, launches_, gpu_launch_names_, huge_number_;
  bool first_is_launch_ = false;
  std::set<std::string> steps_;
  std::set<int64_t> host_pids_, devices_;
  int64_t iteration_start_ns_ = INT64_MIN, window_end_ns_ = INT64_MIN;
};

absl::Status Validator::Look(const TraceEvent& event) {
  const uint64_t at = event.offset;
  const bool is_span = event.phase == 'X';
  const bool first = events_++ == 0;
  if (event.name.empty()) no_name_.At(at);
  if (is_span && event.category.empty()) no_category_.At(at);
  if (event.phase != 'M' && !event.has_time) bad_time_.At(at);
  if (is_span && !event.has_duration) {
    const absl::string_view raw = FindJsonValue(event.raw, "dur");
    (raw.empty() ? no_duration_ : bad_duration_).At(at);
  }
  if (event.has_time && event.time_ns < 0) negative_time_.At(at);
  if (event.time_ns >= kEpochTimesNs) epoch_time_.At(at);
  if (!event.pid_is_text() && event.pid < 0) negative_pid_.At(at);
  if (!event.tid_is_text() && (event.tid < 0 || event.tid > UINT32_MAX)) {
    wide_tid_.At(at);
  }
  LookAtNumbers(event);
  LookAtArgs(event);
  const bool is_gpu =
      IsGpuWork(event.kind) || event.kind == TraceEventKind::kGpuUserAnnotation;
  if (is_span && !event.pid_is_text()) {
    (is_gpu ? devices_ : host_pids_).insert(event.pid);
  }
  if (event.kind == TraceEventKind::kRuntime ||
      event.kind == TraceEventKind::kDriver) {
    launches_.At(at);
    first_is_launch_ |= first;
    if (event.name == "cudaLaunchKernel" || event.name == "hipLaunchKernel" ||
        event.name == "hipExtModuleLaunchKernel" ||
        event.name == "cudaLaunchKernelExC") {
      gpu_launch_names_.At(at);
    }
  }
  if (event.kind == TraceEventKind::kKernel && event.duration_ns < 1000) {
    submicrosecond_.At(at);
  }
  if (event.kind == TraceEventKind::kUserAnnotation &&
      absl::StartsWith(event.name, "ProfilerStep#") && steps_.size() < 4) {
    steps_.insert(std::string(event.name));
  }
  if (event.phase == 'i' && absl::StartsWith(event.name, "Iteration Start") &&
      iteration_start_ns_ == INT64_MIN) {
    iteration_start_ns_ = event.time_ns;
  }
  if (event.phase == 'i' && event.name == "Record Window End") {
    window_end_ns_ = event.time_ns;
  }
  if (is_span && event.has_time && event.has_duration) {
    const uint64_t track =
        static_cast<uint64_t>(event.pid) * 0x9E3779B97F4A7C15 ^
        static_cast<uint64_t>(event.tid);
    return slices_.Add({event.time_ns, event.end_ns(), track, at});
  }
  return absl::OkStatus();
}

void Validator::LookAtNumbers(const TraceEvent& event) {
  for (const char* key : {"ts", "dur", "pid", "tid"}) {
    const absl::string_view raw = FindJsonValue(event.raw, key);
    if (raw.size() < 19 || raw[0] == '"') continue;
    int64_t whole = 0;
    double real = 0;
    const bool is_real = raw.find_first_of(".eE") != absl::string_view::npos;
    const bool fits = is_real ? absl::SimpleAtod(raw, &real) && real - real == 0
                              : absl::SimpleAtoi(raw, &whole);
    if (!fits) huge_number_.At(event.offset);
  }
}

void Validator::LookAtArgs(const TraceEvent& event) {
  if (event.args.empty()) return;
  if (event.args[0] != '{') {
    args_not_object_.At(event.offset);
    return;
  }
  JsonOddities oddities;
  bool has_stream = false, has_correlation = false, stream_is_zero = false;
  VisitJsonObject(event.args, &oddities,
                  [&](absl::string_view key, absl::string_view value) {
                    if (key == "stream") {
                      has_stream = true;
                      stream_is_zero = value == "0";
                    } else if (key == "correlation") {
                      has_correlation = true;
                    }
                    return true;
                  });
  if (oddities.bare_word) bare_word_in_args_.At(event.offset);
  if (has_stream && has_correlation) linked_.At(event.offset);
  if (IsGpuWork(event.kind)) {
    if (stream_is_zero) stream_zero_.At(event.offset);
  } else if (has_stream && (event.kind == TraceEventKind::kCpuOp ||
                            event.kind == TraceEventKind::kRuntime ||
                            event.kind == TraceEventKind::kDriver)) {
    host_with_stream_.At(event.offset);
  }
}

absl::Status Validator::CountOverlaps(Seen* overlaps) {
  FF_RETURN_IF_ERROR(slices_.Sort());
  std::vector<int64_t> open;  // ends, innermost last
  uint64_t track = 0;
  for (TrackSlice slice; slices_.Next(&slice);) {
    if (slice.track != track) open.clear();
    track = slice.track;
    while (!open.empty() && open.back() <= slice.start) open.pop_back();
    if (!open.empty() && slice.end > open.back()) {
      overlaps->At(slice.offset);
      continue;
    }
    open.push_back(slice.end);
  }
  return slices_.status();
}

absl::Status Validator::Perfetto(const TraceFileInfo& info) {
  constexpr TraceConsumer kWho = TraceConsumer::kPerfetto;
  if (info.format == TraceFileFormat::kPerfetto) {
    AddOddity(kWho, true, info, TraceOddity::kMalformedEvent,
              "packets are damaged");
    AddOddity(kWho, false, info, TraceOddity::kTruncated,
              "the last packet is cut off; the rest is read");
    return absl::OkStatus();
  }
  // The importer takes a cut array, not a cut object.
  AddOddity(kWho, info.format == TraceFileFormat::kJsonObject, info,
            TraceOddity::kTruncated, "the document is cut off");
  AddOddity(kWho, true, info, TraceOddity::kTruncatedGzip,
            "the gzip stream is cut off or damaged");
  AddOddity(kWho, true, info, TraceOddity::kMalformedEvent,
            "an event is not JSON");
  AddOddity(kWho, true, info, TraceOddity::kBareWord,
            "a field's value is a bare word (NaN, Infinity, N/A)");
  AddOddity(kWho, true, info, TraceOddity::kControlCharacter,
            "an unescaped control character in a string");
  AddOddity(kWho, true, info, TraceOddity::kInnerQuote,
            "an unescaped quote in a string");
  AddOddity(kWho, true, info, TraceOddity::kMissingKeyQuote,
            "a key without its opening quote");
  AddOddity(kWho, true, info, TraceOddity::kMissingComma,
            "no comma between two events");
  AddOddity(kWho, false, info, TraceOddity::kInvalidUtf8,
            "bytes that are not UTF-8 in a string");
  Add(kWho, true, "huge_number", "a number beyond int64 or double",
      huge_number_);
  Add(kWho, true, "duration_not_a_number",
      "dur is not a number: the importer stops there", bad_duration_);
  Add(kWho, false, "time_not_a_number", "ts is missing or not a number",
      bad_time_);
  Add(kWho, false, "no_duration", "a complete event without dur is dropped",
      no_duration_);
  Add(kWho, false, "bare_word_in_args",
      "a bare word in args: its event's args are lost, older versions refuse "
      "the file",
      bare_word_in_args_);
  Add(kWho, false, "args_not_object",
      "args is not an object: versions before 2025 refuse the file",
      args_not_object_);
  Add(kWho, false, "negative_pid", "a negative pid becomes 0", negative_pid_);
  Add(kWho, false, "tid_out_of_range", "a tid outside 32 bits is cut",
      wide_tid_);
  Add(kWho, false, "negative_time", "a time before 0", negative_time_);
  Add(kWho, false, "epoch_time",
      "times since the epoch are rounded to 0.25 us; write them relative to "
      "baseTimeNanoseconds",
      epoch_time_);
  std::vector<int64_t> shared;
  std::set_intersection(host_pids_.begin(), host_pids_.end(), devices_.begin(),
                        devices_.end(), std::back_inserter(shared));
  if (!shared.empty()) {
    Add(kWho, false, "pid_is_device",
        absl::StrCat("process ", shared[0],
                     " shares its number with a device: their tracks mix"));
  }
  if (info.unpacked_bytes > kBlobBytes) {
    Add(kWho, true, "too_large", "over 4 GiB: split it");
  } else if (info.unpacked_bytes > kWasmBytes) {
    Add(kWho, false, "large",
        "over 2 GiB: the browser needs trace_processor's help");
  }
  Seen overlaps;
  FF_RETURN_IF_ERROR(CountOverlaps(&overlaps));
  Add(kWho, false, "partial_overlap",
      "a slice partly overlaps another on its track: versions before mid-2026 "
      "drop it",
      overlaps);
  return absl::OkStatus();
}

void Validator::Hta(const TraceFileInfo& info) {
  constexpr TraceConsumer kWho = TraceConsumer::kHta;
  if (info.format == TraceFileFormat::kPerfetto) {
    Add(kWho, true, "not_json", "HTA reads JSON alone");
    return;
  }
  if (result_.path != "-" && !absl::EndsWith(result_.path, ".json") &&
      !absl::EndsWith(result_.path, ".gz")) {
    Add(kWho, true, "file_name", "the name must end in .json or .gz");
  }
  if (info.format == TraceFileFormat::kJsonArray) {
    Add(kWho, true, "bare_array", "a bare array; an object is needed");
  }
  for (const TraceOddity oddity :
       {TraceOddity::kTruncated, TraceOddity::kTruncatedGzip,
        TraceOddity::kMalformedEvent, TraceOddity::kControlCharacter,
        TraceOddity::kInnerQuote, TraceOddity::kMissingKeyQuote,
        TraceOddity::kExtraComma, TraceOddity::kMissingComma,
        TraceOddity::kInvalidUtf8, TraceOddity::kTrailingData}) {
    AddOddity(kWho, true, info, oddity,
              absl::StrCat("not strict JSON: ", TraceOddityName(oddity)));
  }
  static const RE2& kRank = *new RE2("\"rank\":\\s+\\d+");
  static const RE2& kCompactRank = *new RE2("\"rank\":\\d+");
  const absl::string_view distributed = info.Metadata("distributedInfo");
  if (!SearchRegex(kRank, distributed)) {
    Add(kWho, true, "no_rank",
        SearchRegex(kCompactRank, distributed)
            ? "distributedInfo.rank needs white space after its colon: every "
              "such file counts as rank 0"
            : "no distributedInfo.rank");
  }
  if (linked_.count == 0) {
    Add(kWho, true, "no_linked_event",
        "no event has both stream and correlation in args");
  }
  if (launches_.count > 0 && gpu_launch_names_.count == 0) {
    Add(kWho, false, "no_launch_kernel",
        "no cudaLaunchKernel: the GPU's maker is not recognised");
  }
  if (first_is_launch_) {
    Add(kWho, false, "first_event_is_launch",
        "the first event is a launch and loses its kernel");
  }
  Add(kWho, false, "host_event_with_stream",
      "a host event with a stream in args counts as a GPU's",
      host_with_stream_);
  Add(kWho, false, "stream_zero", "work on stream 0 loses its launch",
      stream_zero_);
  Add(kWho, false, "submicrosecond_kernel",
      "a kernel shorter than 1 us is rounded to 0", submicrosecond_);
  if (steps_.size() >= 2) {
    Add(kWho, false, "last_step_dropped",
        "the last ProfilerStep is left out unless asked for");
  }
}

void Validator::TensorBoard(const TraceFileInfo& info) {
  constexpr TraceConsumer kWho = TraceConsumer::kTensorBoard;
  if (info.format == TraceFileFormat::kPerfetto) {
    Add(kWho, true, "not_json", "the plugin reads JSON alone");
    return;
  }
  if (result_.path != "-" && !absl::EndsWith(result_.path, ".pt.trace.json") &&
      !absl::EndsWith(result_.path, ".pt.trace.json.gz")) {
    Add(kWho, true, "file_name",
        "the name must end in .pt.trace.json or .pt.trace.json.gz");
  }
  for (const TraceOddity oddity :
       {TraceOddity::kTruncated, TraceOddity::kTruncatedGzip,
        TraceOddity::kMalformedEvent, TraceOddity::kInnerQuote,
        TraceOddity::kMissingKeyQuote, TraceOddity::kExtraComma,
        TraceOddity::kMissingComma, TraceOddity::kTrailingData}) {
    AddOddity(kWho, true, info, oddity,
              absl::StrCat("not JSON: ", TraceOddityName(oddity)));
  }
  Add(kWho, true, "no_name", "an event without a name", no_name_);
  Add(kWho, true, "no_category", "a complete event without cat", no_category_);
  if (steps_.empty()) {
    Add(kWho, false, "no_step", "no ProfilerStep#N: the step view is empty");
  }
  if (!devices_.empty() && info.Metadata("deviceProperties").size() < 4) {
    Add(kWho, false, "no_device_properties",
        "no deviceProperties: the GPU summary is empty");
  }
  if (iteration_start_ns_ != INT64_MIN && window_end_ns_ != INT64_MIN &&
      window_end_ns_ - iteration_start_ns_ > kTensorBoardWindowNs) {
    Add(kWho, false, "window_too_long",
        "Record Window End lies over 86.4 s after the first Iteration Start "
        "and is dropped");
  }
}

}  // namespace

bool TraceValidation::HasErrors() const {
  return std::any_of(problems.begin(), problems.end(),
                     [](const TraceProblem& p) { return p.is_error; });
}

absl::StatusOr<TraceValidation> ValidateTrace(
    const std::string& path, const TraceValidateOptions& options) {
  return Validator(path, options).Run();
}

void CheckRanks(std::vector<TraceValidation>* validations) {
  std::map<int64_t, std::string> seen;
  for (TraceValidation& validation : *validations) {
    if (validation.rank < 0) continue;
    const auto [first, added] =
        seen.try_emplace(validation.rank, validation.path);
    if (added) continue;
    validation.problems.insert(
        validation.problems.begin(),
        {TraceConsumer::kHta, true, "duplicate_rank",
         absl::StrCat("rank ", validation.rank, " is also in ", first->second,
                      ": the last of them wins"),
         1, -1});
  }
}

}  // namespace firstframe
