#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_rewrite.h"
#include "lib/trace/read_twice.h"
#include "lib/trace/trace_analyzer.h"
#include "lib/trace/trace_copy.h"
#include "lib/trace/trace_reader.h"
#include "lib/trace/trace_start.h"
#include "lib/trace/trace_transform.h"

namespace firstframe {
namespace {

// Calls `part(event, emit)`, which emits the names of the parts it goes to.
using PartOf = std::function<void(
    const TraceEvent&, const std::function<void(const std::string&)>&)>;

absl::StatusOr<std::vector<WrittenTrace>> Distribute(const std::string& input,
                                                     const std::string& stem,
                                                     const PartOf& part_of) {
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input));
  TraceCopy copy;
  std::string json;
  absl::Status status;
  for (TraceEvent event;;) {
    FF_ASSIGN_OR_RETURN(const bool more, reader->Next(&event));
    if (!more) break;
    json.clear();
    AppendCleanJson(event.raw, &json);
    if (event.phase == 'M') {
      FF_RETURN_IF_ERROR(copy.EventForAll(json));
      continue;
    }
    part_of(event, [&](const std::string& part) {
      if (!status.ok()) return;
      status = copy.Event(absl::StrCat(stem, ".", part, ".json.gz"),
                          reader->info(), json);
    });
    FF_RETURN_IF_ERROR(status);
  }
  return copy.Finish("", reader->info());
}

absl::StatusOr<std::vector<WrittenTrace>> SplitByTime(const std::string& input,
                                                      const std::string& stem,
                                                      int64_t window_ns) {
  if (window_ns <= 0) {
    return absl::InvalidArgumentError("the window must be longer than 0");
  }
  FF_RETURN_IF_ERROR(CheckReadableTwice(input));
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input));
  FF_ASSIGN_OR_RETURN(const int64_t first, FindTraceStart(*reader));
  return Distribute(
      input, stem, [=](const TraceEvent& event, const auto& emit) {
        if (!event.has_time || event.time_ns < first) {
          emit("t0000");
          return;
        }
        const int64_t window = (event.time_ns - first) / window_ns;
        emit(absl::StrCat("t", absl::Dec(window, absl::kZeroPad4)));
      });
}

// A region's name as part of a file's.
std::string FileName(absl::string_view region) {
  std::string name(region);
  for (char& c : name) {
    if (c == '/' || c == '\0' || absl::ascii_isspace(c)) c = '_';
  }
  return name;
}

absl::StatusOr<std::vector<WrittenTrace>> SplitByRegion(
    const std::string& input, const std::string& stem,
    const TraceSplitOptions& options) {
  FF_RETURN_IF_ERROR(CheckReadableTwice(input));
  FF_ASSIGN_OR_RETURN(auto reader, TraceReader::Open(input));
  TraceAnalyzerOptions analyzer;
  analyzer.region_glob = options.region_glob;
  analyzer.temporary_folder = options.temporary_folder;
  analyzer.keep_windows = true;
  FF_ASSIGN_OR_RETURN(const TraceSummary summary,
                      AnalyzeTrace(*reader, analyzer));
  return Distribute(
      input, stem, [&](const TraceEvent& event, const auto& emit) {
        if (!event.has_time) return;
        for (const RegionSummary& region : summary.regions) {
          // The first window that ends after the event starts.
          const auto window = std::upper_bound(
              region.windows.begin(), region.windows.end(), event.time_ns,
              [](int64_t time, const auto& w) { return time < w.second; });
          if (window == region.windows.end()) continue;
          if (window->first < std::max(event.end_ns(), event.time_ns + 1)) {
            emit(FileName(region.name));
          }
        }
      });
}

}  // namespace

absl::StatusOr<std::vector<WrittenTrace>> SplitTrace(
    const std::string& input, const std::string& stem,
    const TraceSplitOptions& options) {
  switch (options.by) {
    case TraceSplit::kTime:
      return SplitByTime(input, stem, options.window_ns);
    case TraceSplit::kRegion:
      return SplitByRegion(input, stem, options);
    case TraceSplit::kRank:
      break;
  }
  return Distribute(input, stem, [](const TraceEvent& event, const auto& emit) {
    const int64_t index = event.pid / kMergePidStride - 1;
    if (!event.pid_is_text() && index >= 0) {
      emit(absl::StrCat("rank", index));
    }
  });
}

}  // namespace firstframe
