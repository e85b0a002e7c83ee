// One event of a trace, whatever file it came from.

#ifndef LIB_TRACE_TRACE_EVENT_H_
#define LIB_TRACE_TRACE_EVENT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace firstframe {

// What an event's category says, over all ages of Kineto ("Kernel", "kernel").
enum class TraceEventKind : uint8_t {
  kOther,
  kCpuOp,
  kUserAnnotation,
  kGpuUserAnnotation,
  kKernel,
  kMemcpy,
  kMemset,
  kRuntime,  // CUDA or HIP runtime call
  kDriver,   // CUDA driver call
  kSync,
  kOverhead,
  kPythonFunction,
};

TraceEventKind TraceEventKindOf(absl::string_view category);

// Whether the event is work of a device: a kernel, a copy, a memset.
inline bool IsGpuWork(TraceEventKind kind) {
  return kind == TraceEventKind::kKernel || kind == TraceEventKind::kMemcpy ||
         kind == TraceEventKind::kMemset;
}

// Views are valid until the reader's next call.
struct TraceEvent {
  // The Chrome trace format's ph: X, B, E, M, i, C, s, f, ... 0: absent.
  char phase = 0;
  TraceEventKind kind = TraceEventKind::kOther;
  bool has_time = false;
  bool has_duration = false;
  // The name holds backslash escapes: see DecodeJsonString.
  bool name_is_escaped = false;
  absl::string_view category;
  absl::string_view name;
  // Numbers as they stand; a string pid or tid is in *_text and the number is a
  // hash of it with the top bit set.
  int64_t pid = 0;
  int64_t tid = 0;
  absl::string_view pid_text;
  absl::string_view tid_text;
  // Nanoseconds, relative to the trace's base time.
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  absl::string_view id;    // as it stands, for flow and async events
  absl::string_view args;  // the raw object, braces included; may be empty
  absl::string_view raw;   // the whole event, braces included
  // Where the event starts in the unpacked file.
  uint64_t offset = 0;

  // Whether pid and tid are text in the file (also empty text).
  bool pid_is_text() const { return pid_text.data() != nullptr; }
  bool tid_is_text() const { return tid_text.data() != nullptr; }

  int64_t end_ns() const { return time_ns + duration_ns; }
};

}  // namespace firstframe

#endif  // LIB_TRACE_TRACE_EVENT_H_
