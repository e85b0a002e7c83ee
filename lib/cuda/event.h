// Owned CUDA events, and a pool of them for code that records many.

#ifndef LIB_CUDA_EVENT_H_
#define LIB_CUDA_EVENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/runtime.h"

namespace firstframe::cuda {

enum class EventKind {
  kOrdering,  // for waiting only; cheaper to record
  kTiming,
};

// A point in a stream's work. Movable, thread-compatible. May be recorded again
// and again; each recording replaces the one before.
class Event {
 public:
  static absl::StatusOr<Event> Create(EventKind kind,
                                      Runtime& runtime = GetRuntime()) {
    absl::StatusOr<EventHandle> handle =
        runtime.CreateEvent(kind == EventKind::kTiming);
    if (!handle.ok()) return handle.status();
    return Event(*handle, runtime);
  }

  Event(Event&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        runtime_(other.runtime_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(runtime_, other.runtime_);
    return *this;
  }
  ~Event() {
    if (handle_ != nullptr) runtime_->DestroyEvent(handle_).IgnoreError();
  }

  EventHandle handle() const { return handle_; }

  absl::Status Record(StreamHandle stream) {
    return runtime_->RecordEvent(handle_, stream);
  }
  // Never waits. True also for an event that was never recorded.
  absl::StatusOr<bool> IsComplete() const {
    return runtime_->IsEventComplete(handle_);
  }
  absl::Status Synchronize() const {
    return runtime_->SynchronizeEvent(handle_);
  }
  // Work enqueued on `stream` after this call waits for the event.
  absl::Status MakeWait(StreamHandle stream) const {
    return runtime_->StreamWaitEvent(stream, handle_);
  }

  // Returns the device time from `start` to `end`, both kTiming, recorded and
  // complete (else an error; see IsComplete). Resolution is about 500 ns.
  static absl::StatusOr<int64_t> ElapsedNs(const Event& start,
                                           const Event& end) {
    return start.runtime_->ElapsedNs(start.handle_, end.handle_);
  }

 private:
  Event(EventHandle handle, Runtime& runtime)
      : handle_(handle), runtime_(&runtime) {}

  EventHandle handle_;
  Runtime* runtime_;
};

// Keeps events for reuse: creating one costs microseconds and a driver lock,
// taking one from the pool a few nanoseconds. Thread-safe; outlives nothing: an
// event taken is the caller's own until it is given back or destroyed.
class EventPool {
 public:
  explicit EventPool(EventKind kind, Runtime& runtime = GetRuntime())
      : kind_(kind), runtime_(runtime) {}

  absl::StatusOr<Event> Take() {
    {
      absl::MutexLock lock(&mutex_);
      if (!free_.empty()) {
        Event event = std::move(free_.back());
        free_.pop_back();
        return event;
      }
    }
    return Event::Create(kind_, runtime_);
  }

  void GiveBack(Event event) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(event));
  }

 private:
  const EventKind kind_;
  Runtime& runtime_;
  absl::Mutex mutex_;
  std::vector<Event> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_EVENT_H_
