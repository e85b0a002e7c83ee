#include "lib/trace/trace_facts.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "lib/base/status_macros.h"
#include "lib/trace/json_scan.h"

namespace firstframe {
namespace {

// Microseconds since the epoch in a double have steps of 0.25 us.
constexpr int64_t kEpochTimesNs = 1'000'000'000'000'000'000;

}  // namespace

absl::Status TraceFacts::Look(const TraceEvent& event) {
  const uint64_t at = event.offset;
  const bool is_span = event.phase == 'X';
  const bool first = events_++ == 0;
  if (event.name.empty()) no_name.At(at);
  if (is_span && event.category.empty()) no_category.At(at);
  if (event.phase != 'M' && !event.has_time) bad_time.At(at);
  if (is_span && !event.has_duration) {
    const absl::string_view raw = FindJsonValue(event.raw, "dur");
    (raw.empty() ? no_duration : bad_duration).At(at);
  }
  if (event.has_time && event.time_ns < 0) negative_time.At(at);
  if (event.time_ns >= kEpochTimesNs) epoch_time.At(at);
  if (!event.pid_is_text() && event.pid < 0) negative_pid.At(at);
  if (!event.tid_is_text() && (event.tid < 0 || event.tid > UINT32_MAX)) {
    wide_tid.At(at);
  }
  LookAtNumbers(event);
  LookAtArgs(event);
  const bool is_gpu =
      IsGpuWork(event.kind) || event.kind == TraceEventKind::kGpuUserAnnotation;
  if (is_span && !event.pid_is_text()) {
    (is_gpu ? devices : host_pids).insert(event.pid);
  }
  if (event.kind == TraceEventKind::kRuntime ||
      event.kind == TraceEventKind::kDriver) {
    launches.At(at);
    first_is_launch |= first;
    if (event.name == "cudaLaunchKernel" || event.name == "hipLaunchKernel" ||
        event.name == "hipExtModuleLaunchKernel" ||
        event.name == "cudaLaunchKernelExC") {
      gpu_launch_names.At(at);
    }
  }
  if (event.kind == TraceEventKind::kKernel && event.duration_ns < 1000) {
    submicrosecond.At(at);
  }
  if (event.kind == TraceEventKind::kUserAnnotation &&
      absl::StartsWith(event.name, "ProfilerStep#") && steps.size() < 4) {
    steps.insert(std::string(event.name));
  }
  if (event.phase == 'i' && absl::StartsWith(event.name, "Iteration Start") &&
      iteration_start_ns == INT64_MIN) {
    iteration_start_ns = event.time_ns;
  }
  if (event.phase == 'i' && event.name == "Record Window End") {
    window_end_ns = event.time_ns;
  }
  if (is_span && event.has_time && event.has_duration) {
    const uint64_t track =
        static_cast<uint64_t>(event.pid) * 0x9E3779B97F4A7C15 ^
        static_cast<uint64_t>(event.tid);
    return slices_.Add({event.time_ns, event.end_ns(), track, at});
  }
  return absl::OkStatus();
}

void TraceFacts::LookAtNumbers(const TraceEvent& event) {
  for (const char* key : {"ts", "dur", "pid", "tid"}) {
    const absl::string_view raw = FindJsonValue(event.raw, key);
    if (raw.size() < 19 || raw[0] == '"') continue;
    int64_t whole = 0;
    double real = 0;
    const bool is_real = raw.find_first_of(".eE") != absl::string_view::npos;
    const bool fits = is_real ? absl::SimpleAtod(raw, &real) && real - real == 0
                              : absl::SimpleAtoi(raw, &whole);
    if (!fits) huge_number.At(event.offset);
  }
}

void TraceFacts::LookAtArgs(const TraceEvent& event) {
  if (event.args.empty()) return;
  if (event.args[0] != '{') {
    args_not_object.At(event.offset);
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
  if (oddities.bare_word) bare_word_in_args.At(event.offset);
  if (has_stream && has_correlation) linked.At(event.offset);
  if (IsGpuWork(event.kind)) {
    if (stream_is_zero) stream_zero.At(event.offset);
  } else if (has_stream && (event.kind == TraceEventKind::kCpuOp ||
                            event.kind == TraceEventKind::kRuntime ||
                            event.kind == TraceEventKind::kDriver)) {
    host_with_stream.At(event.offset);
  }
}

absl::Status TraceFacts::CountOverlaps(Seen* overlaps) {
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

}  // namespace firstframe
