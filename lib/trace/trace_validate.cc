#include "lib/trace/trace_validate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/regex.h"
#include "lib/base/status_macros.h"
#include "lib/trace/trace_facts.h"
#include "lib/trace/trace_reader.h"

namespace firstframe {
namespace {

constexpr int64_t kTensorBoardWindowNs = int64_t{24} * 3600 * 1'000'000;
constexpr uint64_t kBlobBytes = uint64_t{4} << 30;
constexpr uint64_t kWasmBytes = uint64_t{2} << 30;

class Validator {
 public:
  Validator(const std::string& path, const TraceValidateOptions& options)
      : options_(options), facts_(options.temporary_folder) {
    result_.path = path;
  }

  absl::StatusOr<TraceValidation> Run() {
    FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(result_.path));
    for (TraceEvent event;;) {
      FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
      if (!more) break;
      FF_RETURN_IF_ERROR(facts_.Look(event));
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
  using Seen = TraceFacts::Seen;

  absl::Status Perfetto(const TraceFileInfo& info);
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
  TraceFacts facts_;
};

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
      facts_.huge_number);
  Add(kWho, true, "duration_not_a_number",
      "dur is not a number: the importer stops there", facts_.bad_duration);
  Add(kWho, false, "time_not_a_number", "ts is missing or not a number",
      facts_.bad_time);
  Add(kWho, false, "no_duration", "a complete event without dur is dropped",
      facts_.no_duration);
  Add(kWho, false, "bare_word_in_args",
      "a bare word in args: its event's args are lost, older versions refuse "
      "the file",
      facts_.bare_word_in_args);
  Add(kWho, false, "args_not_object",
      "args is not an object: versions before 2025 refuse the file",
      facts_.args_not_object);
  Add(kWho, false, "negative_pid", "a negative pid becomes 0",
      facts_.negative_pid);
  Add(kWho, false, "tid_out_of_range", "a tid outside 32 bits is cut",
      facts_.wide_tid);
  Add(kWho, false, "negative_time", "a time before 0", facts_.negative_time);
  Add(kWho, false, "epoch_time",
      "times since the epoch are rounded to 0.25 us; write them relative to "
      "baseTimeNanoseconds",
      facts_.epoch_time);
  std::vector<int64_t> shared;
  std::set_intersection(facts_.host_pids.begin(), facts_.host_pids.end(),
                        facts_.devices.begin(), facts_.devices.end(),
                        std::back_inserter(shared));
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
  FF_RETURN_IF_ERROR(facts_.CountOverlaps(&overlaps));
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
  if (facts_.linked.count == 0) {
    Add(kWho, true, "no_linked_event",
        "no event has both stream and correlation in args");
  }
  if (facts_.launches.count > 0 && facts_.gpu_launch_names.count == 0) {
    Add(kWho, false, "no_launch_kernel",
        "no cudaLaunchKernel: the GPU's maker is not recognised");
  }
  if (facts_.first_is_launch) {
    Add(kWho, false, "first_event_is_launch",
        "the first event is a launch and loses its kernel");
  }
  Add(kWho, false, "host_event_with_stream",
      "a host event with a stream in args counts as a GPU's",
      facts_.host_with_stream);
  Add(kWho, false, "stream_zero", "work on stream 0 loses its launch",
      facts_.stream_zero);
  Add(kWho, false, "submicrosecond_kernel",
      "a kernel shorter than 1 us is rounded to 0", facts_.submicrosecond);
  if (facts_.steps.size() >= 2) {
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
  Add(kWho, true, "no_name", "an event without a name", facts_.no_name);
  Add(kWho, true, "no_category", "a complete event without cat",
      facts_.no_category);
  if (facts_.steps.empty()) {
    Add(kWho, false, "no_step", "no ProfilerStep#N: the step view is empty");
  }
  if (!facts_.devices.empty() && info.Metadata("deviceProperties").size() < 4) {
    Add(kWho, false, "no_device_properties",
        "no deviceProperties: the GPU summary is empty");
  }
  if (facts_.iteration_start_ns != INT64_MIN &&
      facts_.window_end_ns != INT64_MIN &&
      facts_.window_end_ns - facts_.iteration_start_ns > kTensorBoardWindowNs) {
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
