#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "lib/regions/region.h"
#include "lib/trace/json_scan.h"
#include "lib/trace/trace_analysis.h"

namespace firstframe::trace_analysis {
namespace {

uint64_t ArgUint(absl::string_view value) {
  uint64_t number = 0;
  int64_t signed_number = 0;
  value = UnquoteJson(value);
  if (absl::SimpleAtoi(value, &number)) return number;
  if (absl::SimpleAtoi(value, &signed_number)) {
    return static_cast<uint64_t>(signed_number);
  }
  return 0;
}

}  // namespace

absl::Status TraceAnalysis::Ingest(const TraceEvent& event) {
  if (event.phase == 'E') {
    std::vector<OpenSpan>& stack = open_[ThreadOf(event)];
    if (stack.empty()) return absl::OkStatus();
    OpenSpan open = stack.back();
    stack.pop_back();
    open.span.end = event.time_ns;
    return open.is_span ? host_.Add(open.span) : absl::OkStatus();
  }
  if (event.phase != 'X' && event.phase != 'B') return absl::OkStatus();
  if (!event.has_time) return absl::OkStatus();
  if (IsGpuWork(event.kind)) return IngestGpu(event);
  HostType type;
  switch (event.kind) {
    case TraceEventKind::kUserAnnotation:
      type = HostType::kAnnotation;
      break;
    case TraceEventKind::kCpuOp:
      type = HostType::kOp;
      ++summary_.host_op_count;
      break;
    case TraceEventKind::kRuntime:
    case TraceEventKind::kDriver:
      type = HostType::kLaunch;
      break;
    case TraceEventKind::kOther:
      // Other tracers' spans may be regions; nothing else of them matters.
      if (event.phase == 'B' ||
          absl::StartsWith(event.name, kRegionSpanPrefix)) {
        type = HostType::kAnnotation;
        break;
      }
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
  if (event.duration_ns < 0) return absl::OkStatus();
  if (event.time_ns < options_.since_ns || event.end_ns() > options_.until_ns) {
    return absl::OkStatus();
  }
  last_time_ = std::max(last_time_, event.end_ns());
  return AddHost(event, type, event.end_ns());
}

absl::Status TraceAnalysis::AddHost(const TraceEvent& event, HostType type,
                                    int64_t end) {
  HostSpan span = {.start = event.time_ns,
                   .end = end,
                   .correlation = 0,
                   .thread = ThreadOf(event),
                   .name = 0,
                   .type = type};
  if (type == HostType::kLaunch) {
    span.correlation = ArgUint(FindJsonValue(event.args, "correlation"));
    if (span.correlation == 0) return absl::OkStatus();
  } else {
    span.name = event.name_is_escaped
                    ? names_.Intern(DecodeJsonString(event.name))
                    : names_.Intern(event.name);
  }
  if (event.phase == 'B') {
    open_[span.thread].push_back({span, type != HostType::kLaunch});
    return absl::OkStatus();
  }
  return host_.Add(span);
}

// Spans that were open when the trace ended last until then.
absl::Status TraceAnalysis::CloseOpenSpans() {
  for (auto& [thread, stack] : open_) {
    for (OpenSpan& open : stack) {
      open.span.end = std::max(open.span.start, last_time_);
      if (open.is_span) FF_RETURN_IF_ERROR(host_.Add(open.span));
    }
  }
  open_.clear();
  return absl::OkStatus();
}

absl::Status TraceAnalysis::IngestGpu(const TraceEvent& event) {
  if (event.time_ns == 0 && event.duration_ns == 0) {
    ++summary_.dropped_zero_time;
    return absl::OkStatus();
  }
  if (event.duration_ns < 0) {
    ++summary_.dropped_negative;
    return absl::OkStatus();
  }
  if (event.duration_ns > kWeekNs) {
    ++summary_.dropped_overlong;
    return absl::OkStatus();
  }
  if (event.time_ns < options_.since_ns || event.end_ns() > options_.until_ns) {
    return absl::OkStatus();
  }
  GpuEvent record = {.correlation = 0,
                     .start = event.time_ns,
                     .end = event.end_ns(),
                     .bytes = 0,
                     .launch_end = INT64_MIN,
                     .name = 0,
                     .op = 0,
                     .lane = 0,
                     .instance = kNone,
                     .kind = event.kind,
                     .by_time = false};
  int64_t device = event.pid, stream = event.tid;
  JsonOddities ignored;
  VisitJsonObject(event.args, &ignored,
                  [&](absl::string_view key, absl::string_view value) {
                    if (key == "correlation") {
                      record.correlation = ArgUint(value);
                    } else if (key == "device") {
                      device = static_cast<int64_t>(ArgUint(value));
                    } else if (key == "stream") {
                      stream = static_cast<int64_t>(ArgUint(value));
                    } else if (key == "bytes") {
                      record.bytes = static_cast<int64_t>(ArgUint(value));
                    }
                    return true;
                  });
  record.lane = LaneOf(device, stream);
  record.name = event.name_is_escaped
                    ? names_.Intern(DecodeJsonString(event.name))
                    : names_.Intern(event.name);
  ++summary_.gpu_event_count;
  last_time_ = std::max(last_time_, record.end);
  return gpu_.Add(record);
}

}  // namespace firstframe::trace_analysis
