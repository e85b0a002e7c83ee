// The stream on which a store copies, with the events that order it against the
// stream that computes.

#ifndef LIB_OFFLOAD_COPY_LANE_H_
#define LIB_OFFLOAD_COPY_LANE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"

namespace firstframe {

// Makes a device current on this thread, and the one before again at the end.
class CurrentDevice {
 public:
  static absl::StatusOr<CurrentDevice> Set(int device, cuda::Runtime& runtime) {
    FF_ASSIGN_OR_RETURN(const int before, runtime.CurrentDevice());
    if (before != device) FF_RETURN_IF_ERROR(runtime.SetDevice(device));
    return CurrentDevice(before == device ? -1 : before, runtime);
  }
  CurrentDevice(CurrentDevice&& other) noexcept
      : before_(std::exchange(other.before_, -1)), runtime_(other.runtime_) {}
  ~CurrentDevice() {
    if (before_ >= 0) runtime_.SetDevice(before_).IgnoreError();
  }

 private:
  CurrentDevice(int before, cuda::Runtime& runtime)
      : before_(before), runtime_(runtime) {}

  int before_;
  cuda::Runtime& runtime_;
};

struct CopyLane {
  // On `device`, which must be current.
  static absl::StatusOr<std::shared_ptr<CopyLane>> Create(
      int device, cuda::Runtime& runtime) {
    FF_ASSIGN_OR_RETURN(cuda::Stream stream, cuda::Stream::Create(0, runtime));
    FF_ASSIGN_OR_RETURN(
        cuda::Event copied,
        cuda::Event::Create(cuda::EventKind::kOrdering, runtime));
    FF_ASSIGN_OR_RETURN(
        cuda::Event used,
        cuda::Event::Create(cuda::EventKind::kOrdering, runtime));
    return std::make_shared<CopyLane>(CopyLane{
        device, std::move(stream), std::move(copied), std::move(used)});
  }

  // Work enqueued on `compute` from now on comes after what is on this lane.
  absl::Status MakeWait(cuda::StreamHandle compute) {
    FF_RETURN_IF_ERROR(copied.Record(stream.handle()));
    return copied.MakeWait(compute);
  }
  // What is enqueued on this lane from now on comes after what is on `compute`.
  absl::Status WaitFor(cuda::StreamHandle compute) {
    FF_RETURN_IF_ERROR(used.Record(compute));
    return used.MakeWait(stream.handle());
  }

  int device;
  cuda::Stream stream;
  cuda::Event copied;
  cuda::Event used;
};

// Device memory of a lane. Freed in the order of its stream, which it keeps.
struct LaneMemory {
  static absl::StatusOr<std::shared_ptr<LaneMemory>> Allocate(
      uint64_t size_bytes, std::shared_ptr<CopyLane> lane) {
    FF_ASSIGN_OR_RETURN(
        cuda::DeviceBuffer buffer,
        cuda::DeviceBuffer::AllocateAsync(size_bytes, lane->stream.handle(),
                                          lane->stream.runtime()));
    return std::make_shared<LaneMemory>(
        LaneMemory{std::move(lane), std::move(buffer)});
  }

  std::shared_ptr<CopyLane> lane;  // goes after the buffer
  cuda::DeviceBuffer buffer;
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_COPY_LANE_H_
