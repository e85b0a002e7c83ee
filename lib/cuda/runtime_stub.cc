#include "lib/cuda/runtime.h"

namespace firstframe::cuda {
namespace {

absl::Status NotBuilt() {
  return absl::UnimplementedError(
      "built without CUDA: install the CUDA toolkit (nvcc), or point CUDA_PATH "
      "at it, and rebuild with --config=cuda");
}

class StubRuntime final : public Runtime {
 public:
  absl::StatusOr<Versions> GetVersions() override { return NotBuilt(); }
  absl::StatusOr<int> DeviceCount() override { return NotBuilt(); }
  absl::StatusOr<DeviceProperties> GetProperties(int) override {
    return NotBuilt();
  }
  bool HasContext(int) override { return false; }
  absl::Status SetDevice(int) override { return NotBuilt(); }
  absl::StatusOr<int> CurrentDevice() override { return NotBuilt(); }
  absl::StatusOr<MemoryInfo> GetMemoryInfo() override { return NotBuilt(); }
  absl::Status SynchronizeDevice() override { return NotBuilt(); }
  absl::StatusOr<void*> Allocate(size_t) override { return NotBuilt(); }
  absl::Status Free(void*) override { return NotBuilt(); }
  absl::StatusOr<void*> AllocateAsync(size_t, StreamHandle) override {
    return NotBuilt();
  }
  absl::Status FreeAsync(void*, StreamHandle) override { return NotBuilt(); }
  absl::StatusOr<void*> AllocatePinned(size_t) override { return NotBuilt(); }
  absl::Status FreePinned(void*) override { return NotBuilt(); }
  absl::Status RegisterHost(void*, size_t, bool) override { return NotBuilt(); }
  absl::Status UnregisterHost(void*) override { return NotBuilt(); }
  absl::Status CopyAsync(const Copy&, StreamHandle) override {
    return NotBuilt();
  }
  absl::Status CopyBatchAsync(absl::Span<const Copy>, StreamHandle) override {
    return NotBuilt();
  }
  absl::Status FillAsync(void*, unsigned char, size_t, StreamHandle) override {
    return NotBuilt();
  }
  absl::StatusOr<StreamHandle> CreateStream(int) override { return NotBuilt(); }
  absl::Status DestroyStream(StreamHandle) override { return NotBuilt(); }
  absl::Status SynchronizeStream(StreamHandle) override { return NotBuilt(); }
  absl::StatusOr<bool> IsStreamIdle(StreamHandle) override {
    return NotBuilt();
  }
  absl::Status StreamWaitEvent(StreamHandle, EventHandle) override {
    return NotBuilt();
  }
  absl::Status LaunchHostFunction(StreamHandle, void (*)(void*),
                                  void*) override {
    return NotBuilt();
  }
  absl::StatusOr<EventHandle> CreateEvent(bool) override { return NotBuilt(); }
  absl::Status DestroyEvent(EventHandle) override { return NotBuilt(); }
  absl::Status RecordEvent(EventHandle, StreamHandle) override {
    return NotBuilt();
  }
  absl::StatusOr<bool> IsEventComplete(EventHandle) override {
    return NotBuilt();
  }
  absl::Status SynchronizeEvent(EventHandle) override { return NotBuilt(); }
  absl::StatusOr<int64_t> ElapsedNs(EventHandle, EventHandle) override {
    return NotBuilt();
  }
};

}  // namespace

Runtime& GetRuntime() {
  static Runtime* const runtime = new StubRuntime;
  return *runtime;
}

bool IsBuiltWithCuda() { return false; }

}  // namespace firstframe::cuda
