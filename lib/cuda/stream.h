// An owned CUDA stream: work on it runs in the order in which it was enqueued.

#ifndef LIB_CUDA_STREAM_H_
#define LIB_CUDA_STREAM_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"

namespace firstframe::cuda {

// Movable; thread-safe apart from moves and destruction. Belongs to the device
// that was current when it was created. The destructor does not wait: CUDA
// finishes the work that was enqueued.
class Stream {
 public:
  static absl::StatusOr<Stream> Create(int priority = 0,
                                       Runtime& runtime = GetRuntime()) {
    absl::StatusOr<StreamHandle> handle = runtime.CreateStream(priority);
    if (!handle.ok()) return handle.status();
    return Stream(*handle, runtime);
  }

  Stream(Stream&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        runtime_(other.runtime_) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(runtime_, other.runtime_);
    return *this;
  }
  ~Stream() {
    if (handle_ != nullptr) runtime_->DestroyStream(handle_).IgnoreError();
  }

  StreamHandle handle() const { return handle_; }
  Runtime& runtime() const { return *runtime_; }

  // Waits for everything enqueued so far; also reports errors of that work.
  absl::Status Synchronize() const {
    return runtime_->SynchronizeStream(handle_);
  }
  absl::StatusOr<bool> IsIdle() const {
    return runtime_->IsStreamIdle(handle_);
  }

  // Copies between any two of host and device memory. Host memory that is not
  // pinned makes the copy partly synchronous.
  absl::Status CopyAsync(void* to, const void* from, size_t size_bytes) const {
    return runtime_->CopyAsync({to, from, size_bytes}, handle_);
  }
  absl::Status CopyBatchAsync(absl::Span<const Copy> copies) const {
    return runtime_->CopyBatchAsync(copies, handle_);
  }
  absl::Status FillAsync(void* pointer, unsigned char value,
                         size_t size_bytes) const {
    return runtime_->FillAsync(pointer, value, size_bytes, handle_);
  }

 private:
  Stream(StreamHandle handle, Runtime& runtime)
      : handle_(handle), runtime_(&runtime) {}

  StreamHandle handle_;
  Runtime* runtime_;
};

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_STREAM_H_
