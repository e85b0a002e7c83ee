#include "lib/timing/marker.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace firstframe {

MarkerSource::~MarkerSource() {
  absl::MutexLock lock(&mutex_);
  for (const cuda::EventHandle event : free_) {
    device_.runtime->DestroyEvent(event).IgnoreError();
  }
}

bool MarkerSource::HasDevice() {
  if (device_.runtime == nullptr) return false;
  absl::MutexLock lock(&mutex_);
  // Only "yes" is remembered: CUDA may still come up later in the run.
  if (!has_context_) {
    has_context_ = device_.runtime->HasContext(device_.ordinal);
  }
  return has_context_;
}

std::string MarkerSource::DeviceName() {
  return HasDevice() ? absl::StrCat("cuda:", device_.ordinal) : "";
}

int64_t MarkerSource::failures() const {
  absl::MutexLock lock(&mutex_);
  return failures_;
}

cuda::StreamHandle MarkerSource::Stream() const {
  return device_.current_stream ? device_.current_stream() : device_.stream;
}

// Calls `call` with the device current on this thread.
absl::Status MarkerSource::OnDevice(absl::FunctionRef<absl::Status()> call) {
  const absl::StatusOr<int> current = device_.runtime->CurrentDevice();
  if (!current.ok()) return current.status();
  const bool switches = *current != device_.ordinal;
  if (switches) {
    const absl::Status status = device_.runtime->SetDevice(device_.ordinal);
    if (!status.ok()) return status;
  }
  const absl::Status status = call();
  if (switches) device_.runtime->SetDevice(*current).IgnoreError();
  return status;
}

// An event belongs to the device that is current when it is made.
absl::Status MarkerSource::CreateEventOnDevice(cuda::EventHandle* event) {
  return OnDevice([&] {
    const absl::StatusOr<cuda::EventHandle> created =
        device_.runtime->CreateEvent(/*with_timing=*/true);
    if (created.ok()) *event = *created;
    return created.status();
  });
}

cuda::EventHandle MarkerSource::TakeEvent() {
  {
    absl::MutexLock lock(&mutex_);
    if (!free_.empty()) {
      const cuda::EventHandle event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  cuda::EventHandle event = nullptr;
  if (!CreateEventOnDevice(&event).ok()) {
    absl::MutexLock lock(&mutex_);
    ++failures_;
    return nullptr;
  }
  return event;
}

Marker MarkerSource::MarkDevice() {
  if (!HasDevice()) return MarkHost();
  const cuda::EventHandle event = TakeEvent();
  if (event == nullptr) return MarkHost();
  if (!device_.runtime->RecordEvent(event, Stream()).ok()) {
    absl::MutexLock lock(&mutex_);
    ++failures_;
    free_.push_back(event);
    return MarkHost();
  }
  return {clock_.NowNs(), event};
}

bool MarkerSource::IsReady(const MarkerPair& pair) {
  if (pair.end.event == nullptr) return true;
  const absl::StatusOr<bool> complete =
      device_.runtime->IsEventComplete(pair.end.event);
  return complete.ok() && *complete;
}

int64_t MarkerSource::SpanNs(const MarkerPair& pair) {
  const int64_t host_ns = pair.end.host_ns - pair.start.host_ns;
  if (pair.start.event == nullptr || pair.end.event == nullptr) return host_ns;
  if (!IsReady({{}, pair.start}) || !IsReady(pair)) return host_ns;
  const absl::StatusOr<int64_t> device_ns =
      device_.runtime->ElapsedNs(pair.start.event, pair.end.event);
  return device_ns.ok() ? std::max(host_ns, *device_ns) : host_ns;
}

void MarkerSource::Recycle(const MarkerPair& pair) {
  if (pair.start.event == nullptr && pair.end.event == nullptr) return;
  absl::MutexLock lock(&mutex_);
  for (const cuda::EventHandle event : {pair.start.event, pair.end.event}) {
    if (event != nullptr) free_.push_back(event);
  }
}

absl::Status MarkerSource::Synchronize() {
  if (!HasDevice()) return absl::OkStatus();
  if (device_.current_stream) {
    return OnDevice([&] { return device_.runtime->SynchronizeDevice(); });
  }
  return device_.runtime->SynchronizeStream(device_.stream);
}

}  // namespace firstframe
