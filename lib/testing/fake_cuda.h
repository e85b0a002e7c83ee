// A CUDA runtime on host memory, for tests of code that takes cuda::Runtime&.
//
// "Device" memory is host memory. Work on a stream is done when it is enqueued,
// unless the stream is held: then it waits, in order, until Release(). Event
// times come from a clock that the test moves. Streams do not wait for events.

#ifndef LIB_TESTING_FAKE_CUDA_H_
#define LIB_TESTING_FAKE_CUDA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "lib/cuda/runtime.h"

namespace firstframe::testing {

// Thread-safe, apart from what a test sets. Every call is checked: freeing what
// was not allocated, destroying what was not created and copying out of bounds
// stop the process.
class FakeCuda final : public cuda::Runtime {
 public:
  FakeCuda();
  ~FakeCuda() override;

  // --- what a test sets ---
  int device_count = 1;
  int64_t memory_bytes = int64_t{1} << 30;  // of the device
  void AdvanceNs(int64_t ns) { now_ns_ += ns; }
  // Holds work enqueued from now on, on every stream.
  void Hold() { is_held_ = true; }
  // Does what was held and stops holding. Event times are taken now.
  void Release();
  // The next call of the method `name` ("Allocate") returns `status` instead.
  void FailNext(const std::string& name, absl::Status status);

  // --- what a test asks ---
  int64_t live_bytes() const;  // device and pinned memory not freed
  int live_handles() const;    // streams and events not destroyed
  int calls(const std::string& name) const;

  absl::StatusOr<cuda::Versions> GetVersions() override;
  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<cuda::DeviceProperties> GetProperties(int ordinal) override;
  bool HasContext(int ordinal) override;
  absl::Status SetDevice(int ordinal) override;
  absl::StatusOr<int> CurrentDevice() override;
  absl::StatusOr<cuda::MemoryInfo> GetMemoryInfo() override;
  absl::Status SynchronizeDevice() override;
  absl::StatusOr<void*> Allocate(size_t size_bytes) override;
  absl::Status Free(void* pointer) override;
  absl::StatusOr<void*> AllocateAsync(size_t size_bytes,
                                      cuda::StreamHandle stream) override;
  absl::Status FreeAsync(void* pointer, cuda::StreamHandle stream) override;
  absl::StatusOr<void*> AllocatePinned(size_t size_bytes) override;
  absl::Status FreePinned(void* pointer) override;
  absl::Status RegisterHost(void* pointer, size_t size_bytes,
                            bool read_only) override;
  absl::Status UnregisterHost(void* pointer) override;
  absl::Status CopyAsync(const cuda::Copy& copy,
                         cuda::StreamHandle stream) override;
  absl::Status CopyBatchAsync(absl::Span<const cuda::Copy> copies,
                              cuda::StreamHandle stream) override;
  absl::Status FillAsync(void* pointer, unsigned char value, size_t size_bytes,
                         cuda::StreamHandle stream) override;
  absl::StatusOr<cuda::StreamHandle> CreateStream(int priority) override;
  absl::Status DestroyStream(cuda::StreamHandle stream) override;
  // Releases what is held.
  absl::Status SynchronizeStream(cuda::StreamHandle stream) override;
  absl::StatusOr<bool> IsStreamIdle(cuda::StreamHandle stream) override;
  absl::Status StreamWaitEvent(cuda::StreamHandle stream,
                               cuda::EventHandle event) override;
  absl::Status LaunchHostFunction(cuda::StreamHandle stream,
                                  void (*function)(void*),
                                  void* argument) override;
  absl::StatusOr<cuda::EventHandle> CreateEvent(bool with_timing) override;
  absl::Status DestroyEvent(cuda::EventHandle event) override;
  absl::Status RecordEvent(cuda::EventHandle event,
                           cuda::StreamHandle stream) override;
  absl::StatusOr<bool> IsEventComplete(cuda::EventHandle event) override;
  absl::Status SynchronizeEvent(cuda::EventHandle event) override;
  absl::StatusOr<int64_t> ElapsedNs(cuda::EventHandle start,
                                    cuda::EventHandle end) override;

 private:
  struct EventState {
    bool with_timing = false;
    int pending = 0;  // recordings still held
    bool is_recorded = false;
    int64_t time_ns = 0;
  };

  absl::Status Called(const std::string& name);
  absl::StatusOr<void*> AllocateBytes(const std::string& name,
                                      size_t size_bytes);
  absl::Status FreeBytes(const std::string& name, void* pointer);
  absl::Status Enqueue(const std::string& name, std::function<void()> work);

  struct FreeBlock {
    void operator()(unsigned char* block) const {
      ::operator delete (block, std::align_val_t{256});
    }
  };
  using Block = std::unique_ptr<unsigned char, FreeBlock>;

  // Recursive: held work may come back with calls of its own.
  mutable std::recursive_mutex mutex_;
  int64_t now_ns_ = 0;
  int current_device_ = 0;
  bool has_context_ = false;
  bool is_held_ = false;
  std::vector<std::function<void()>> held_;
  std::map<void*, Block> memory_;
  std::map<void*, size_t> sizes_;
  std::map<void*, size_t> registered_;
  std::map<void*, EventState> events_;
  std::map<void*, int> streams_;
  std::map<std::string, absl::Status> failures_;
  std::map<std::string, int> calls_;
  uintptr_t next_handle_ = 1;
};

}  // namespace firstframe::testing

#endif  // LIB_TESTING_FAKE_CUDA_H_
