#include "lib/testing/fake_cuda.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"

namespace firstframe::testing {

using cuda::Copy;
using cuda::EventHandle;
using cuda::StreamHandle;

FakeCuda::FakeCuda() = default;
FakeCuda::~FakeCuda() = default;

void FakeCuda::Release() {
  const std::lock_guard lock(mutex_);
  is_held_ = false;
  std::vector<std::function<void()>> held = std::move(held_);
  held_.clear();
  for (const std::function<void()>& work : held) work();
}

void FakeCuda::FailNext(const std::string& name, absl::Status status) {
  const std::lock_guard lock(mutex_);
  failures_[name] = std::move(status);
}

int64_t FakeCuda::live_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [pointer, size_bytes] : sizes_) {
    total += static_cast<int64_t>(size_bytes);
  }
  return total;
}

int FakeCuda::live_handles() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(events_.size() + streams_.size());
}

int FakeCuda::calls(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

absl::Status FakeCuda::Called(const std::string& name) {
  ++calls_[name];
  const auto failure = failures_.find(name);
  if (failure == failures_.end()) return absl::OkStatus();
  absl::Status status = failure->second;
  failures_.erase(failure);
  return status;
}

absl::StatusOr<void*> FakeCuda::AllocateBytes(const std::string& name,
                                              size_t size_bytes) {
  FF_RETURN_IF_ERROR(Called(name));
  has_context_ = true;
  if (live_bytes() + static_cast<int64_t>(size_bytes) > memory_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, " of ", size_bytes, " bytes: out of memory"));
  }
  Block block(static_cast<unsigned char*>(
      ::operator new (size_bytes, std::align_val_t{256})));
  std::memset(block.get(), 0xCD, size_bytes);  // device memory is not zeroed
  void* pointer = block.get();
  sizes_[pointer] = size_bytes;
  memory_[pointer] = std::move(block);
  return pointer;
}

absl::Status FakeCuda::FreeBytes(const std::string& name, void* pointer) {
  FF_RETURN_IF_ERROR(Called(name));
  if (pointer == nullptr) return absl::OkStatus();
  FF_CHECK(sizes_.erase(pointer) == 1);
  memory_.erase(pointer);
  return absl::OkStatus();
}

absl::Status FakeCuda::Enqueue(const std::string& name,
                               std::function<void()> work) {
  FF_RETURN_IF_ERROR(Called(name));
  has_context_ = true;
  if (is_held_) {
    held_.push_back(std::move(work));
  } else {
    work();
  }
  return absl::OkStatus();
}

absl::StatusOr<cuda::Versions> FakeCuda::GetVersions() {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("GetVersions"));
  return cuda::Versions{13000, 13000};
}

absl::StatusOr<int> FakeCuda::DeviceCount() {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("DeviceCount"));
  return device_count;
}

absl::StatusOr<cuda::DeviceProperties> FakeCuda::GetProperties(int ordinal) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("GetProperties"));
  FF_CHECK(ordinal >= 0 && ordinal < device_count);
  cuda::DeviceProperties properties;
  properties.ordinal = ordinal;
  properties.name = "Fake GPU";
  properties.pci_bus_id = absl::StrCat("0000:0", ordinal, ":00.0");
  properties.compute_major = 9;
  properties.multiprocessors = 4;
  properties.memory_bytes = memory_bytes;
  return properties;
}

bool FakeCuda::HasContext(int ordinal) {
  const std::lock_guard lock(mutex_);
  return has_context_ && ordinal == current_device_;
}

absl::Status FakeCuda::SetDevice(int ordinal) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("SetDevice"));
  if (ordinal < 0 || ordinal >= device_count) {
    return absl::InvalidArgumentError("invalid device ordinal");
  }
  current_device_ = ordinal;
  has_context_ = true;
  return absl::OkStatus();
}

absl::StatusOr<int> FakeCuda::CurrentDevice() {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("CurrentDevice"));
  return current_device_;
}

absl::StatusOr<cuda::MemoryInfo> FakeCuda::GetMemoryInfo() {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("GetMemoryInfo"));
  return cuda::MemoryInfo{memory_bytes - live_bytes(), memory_bytes};
}

absl::Status FakeCuda::SynchronizeDevice() {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("SynchronizeDevice"));
  Release();
  return absl::OkStatus();
}

absl::StatusOr<void*> FakeCuda::Allocate(size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  return AllocateBytes("Allocate", size_bytes);
}
absl::Status FakeCuda::Free(void* pointer) {
  const std::lock_guard lock(mutex_);
  return FreeBytes("Free", pointer);
}
absl::StatusOr<void*> FakeCuda::AllocateAsync(size_t size_bytes, StreamHandle) {
  const std::lock_guard lock(mutex_);
  return AllocateBytes("AllocateAsync", size_bytes);
}
absl::Status FakeCuda::FreeAsync(void* pointer, StreamHandle) {
  const std::lock_guard lock(mutex_);
  return Enqueue("FreeAsync",
                 [=, this] { FreeBytes("", pointer).IgnoreError(); });
}
absl::StatusOr<void*> FakeCuda::AllocatePinned(size_t size_bytes) {
  const std::lock_guard lock(mutex_);
  return AllocateBytes("AllocatePinned", size_bytes);
}
absl::Status FakeCuda::FreePinned(void* pointer) {
  const std::lock_guard lock(mutex_);
  return FreeBytes("FreePinned", pointer);
}

absl::Status FakeCuda::RegisterHost(void* pointer, size_t size_bytes, bool) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("RegisterHost"));
  FF_CHECK(registered_.emplace(pointer, size_bytes).second);
  return absl::OkStatus();
}

absl::Status FakeCuda::UnregisterHost(void* pointer) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("UnregisterHost"));
  FF_CHECK(registered_.erase(pointer) == 1);
  return absl::OkStatus();
}

absl::Status FakeCuda::CopyAsync(const Copy& copy, StreamHandle) {
  const std::lock_guard lock(mutex_);
  return Enqueue("CopyAsync",
                 [copy] { std::memcpy(copy.to, copy.from, copy.size_bytes); });
}

absl::Status FakeCuda::CopyBatchAsync(absl::Span<const Copy> copies,
                                      StreamHandle) {
  const std::lock_guard lock(mutex_);
  return Enqueue("CopyBatchAsync",
                 [list = std::vector<Copy>(copies.begin(), copies.end())] {
                   for (const Copy& copy : list) {
                     std::memcpy(copy.to, copy.from, copy.size_bytes);
                   }
                 });
}

absl::Status FakeCuda::FillAsync(void* pointer, unsigned char value,
                                 size_t size_bytes, StreamHandle) {
  const std::lock_guard lock(mutex_);
  return Enqueue("FillAsync", [=] { std::memset(pointer, value, size_bytes); });
}

absl::StatusOr<StreamHandle> FakeCuda::CreateStream(int priority) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("CreateStream"));
  has_context_ = true;
  auto* handle = reinterpret_cast<StreamHandle>(next_handle_++);
  streams_[handle] = priority;
  return handle;
}

absl::Status FakeCuda::DestroyStream(StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("DestroyStream"));
  FF_CHECK(streams_.erase(stream) == 1);
  return absl::OkStatus();
}

absl::Status FakeCuda::SynchronizeStream(StreamHandle) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("SynchronizeStream"));
  Release();
  return absl::OkStatus();
}

absl::StatusOr<bool> FakeCuda::IsStreamIdle(StreamHandle) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("IsStreamIdle"));
  return held_.empty();
}

absl::Status FakeCuda::StreamWaitEvent(StreamHandle, EventHandle event) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("StreamWaitEvent"));
  FF_CHECK(events_.count(event) == 1);
  return absl::OkStatus();
}

absl::Status FakeCuda::LaunchHostFunction(StreamHandle, void (*function)(void*),
                                          void* argument) {
  const std::lock_guard lock(mutex_);
  return Enqueue("LaunchHostFunction", [=] { function(argument); });
}

absl::StatusOr<EventHandle> FakeCuda::CreateEvent(bool with_timing) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("CreateEvent"));
  has_context_ = true;
  auto* handle = reinterpret_cast<EventHandle>(next_handle_++);
  events_[handle].with_timing = with_timing;
  return handle;
}

absl::Status FakeCuda::DestroyEvent(EventHandle event) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("DestroyEvent"));
  FF_CHECK(events_.erase(event) == 1);
  return absl::OkStatus();
}

absl::Status FakeCuda::RecordEvent(EventHandle event, StreamHandle) {
  const std::lock_guard lock(mutex_);
  FF_CHECK(events_.count(event) == 1);
  ++events_[event].pending;
  absl::Status status = Enqueue("RecordEvent", [this, event] {
    const auto found = events_.find(event);
    if (found == events_.end()) return;  // destroyed while held, as CUDA allows
    --found->second.pending;
    found->second.is_recorded = true;
    found->second.time_ns = now_ns_;
  });
  if (!status.ok()) --events_[event].pending;
  return status;
}

absl::StatusOr<bool> FakeCuda::IsEventComplete(EventHandle event) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("IsEventComplete"));
  return events_.at(event).pending == 0;
}

absl::Status FakeCuda::SynchronizeEvent(EventHandle event) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("SynchronizeEvent"));
  if (events_.at(event).pending > 0) Release();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FakeCuda::ElapsedNs(EventHandle start,
                                            EventHandle end) {
  const std::lock_guard lock(mutex_);
  FF_RETURN_IF_ERROR(Called("ElapsedNs"));
  for (const EventHandle event : {start, end}) {
    const EventState& state = events_.at(event);
    if (!state.with_timing || !state.is_recorded) {
      return absl::InvalidArgumentError("event has no time");
    }
    if (state.pending > 0) return absl::InternalError("event is not ready");
  }
  return events_.at(end).time_ns - events_.at(start).time_ns;
}

}  // namespace firstframe::testing
