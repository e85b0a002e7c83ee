// Points in time that see both the host and the device.
//
// Neither clock is right alone. A call that launches kernels returns when they
// are queued, so the host clock reports submission; a module that runs on the
// host lies between two events that the device passes back to back. A marker
// therefore takes both, and a pair of them resolves to the larger span. Nothing
// here waits for the device but Synchronize().

#ifndef LIB_TIMING_MARKER_H_
#define LIB_TIMING_MARKER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/runtime.h"
#include "lib/timing/clock.h"

namespace firstframe {

// Host time, and where there is a device an event recorded on its stream. Its
// event belongs to the MarkerSource until Recycle().
struct Marker {
  int64_t host_ns = 0;
  cuda::EventHandle event = nullptr;  // null: host only
};

struct MarkerPair {
  Marker start;
  Marker end;
};

// Where the device's work of a measured run goes.
struct MarkerDevice {
  cuda::Runtime* runtime = nullptr;  // null: host only
  int ordinal = 0;
  cuda::StreamHandle stream = nullptr;  // named, never "the current one"
  // For a program that changes streams: gives the one in use, for each marker.
  // Synchronize() then waits for the whole device. Null: always `stream`.
  std::function<cuda::StreamHandle()> current_stream = nullptr;
};

// Makes markers and resolves pairs of them. Thread-safe. All pairs must be
// recycled, and the device idle, before it is destroyed.
class MarkerSource {
 public:
  // Host only.
  explicit MarkerSource(const Clock& clock = MonotonicClock::Get())
      : clock_(clock) {}
  // Host and device. While the process has no context on the device, markers
  // are host only: measuring creates none that the run would not have.
  MarkerSource(const Clock& clock, const MarkerDevice& device)
      : clock_(clock), device_(device) {}
  ~MarkerSource();
  MarkerSource(const MarkerSource&) = delete;
  MarkerSource& operator=(const MarkerSource&) = delete;

  // Records an event behind the work enqueued so far. About 25 ns on the host,
  // 1 to 3 us more with a device.
  Marker Mark() {
    if (device_.runtime == nullptr) return {clock_.NowNs(), nullptr};
    return MarkDevice();
  }
  Marker MarkHost() const { return {clock_.NowNs(), nullptr}; }

  // Whether the span of `pair` can be read from the device. Only the closing
  // event is asked: a stream passes its events in order. True for pairs without
  // events.
  bool IsReady(const MarkerPair& pair);

  // Returns the larger of the host span and, if both events have completed, the
  // device span. Never waits.
  int64_t SpanNs(const MarkerPair& pair);

  // Takes the pair's events back for reuse. Recording one again while an
  // earlier recording is pending is fine: the last one counts.
  void Recycle(const MarkerPair& pair);

  // Waits for the stream, or for all of the device when streams change; returns
  // at once without a device or context.
  absl::Status Synchronize();

  const Clock& clock() const { return clock_; }
  bool HasDevice();
  // "cuda:0"; empty without a device or context.
  std::string DeviceName();
  // Device calls that failed, each of which cost a marker its event.
  int64_t failures() const;

 private:
  Marker MarkDevice();
  cuda::StreamHandle Stream() const;
  absl::Status OnDevice(absl::FunctionRef<absl::Status()> call);
  cuda::EventHandle TakeEvent();
  absl::Status CreateEventOnDevice(cuda::EventHandle* event);

  const Clock& clock_;
  const MarkerDevice device_;
  mutable absl::Mutex mutex_;
  bool has_context_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<cuda::EventHandle> free_ ABSL_GUARDED_BY(mutex_);
  int64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace firstframe

#endif  // LIB_TIMING_MARKER_H_
