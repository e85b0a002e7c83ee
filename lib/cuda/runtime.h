// The CUDA runtime as one interface: everything that lib/cuda's owning types
// (Stream, Event, DeviceBuffer, ...) call, and nothing they do not.
//
// GetRuntime() is the real one, or in a build without CUDA one that answers
// Unimplemented to everything. lib/testing/fake_cuda.h has one that works on
// host memory. Code that launches kernels or calls a CUDA library takes
// Stream::handle(), which is the cudaStream_t.
//
// Nothing here starts CUDA until it is called: the driver is opened and its
// context created by the first call that needs it. Every call may return
// Unavailable (no driver, no GPU; the message names what is missing) and
// Internal (an earlier kernel of this process failed: CUDA reports such errors
// late). Thread-safe; the current device belongs to the calling thread.

#ifndef LIB_CUDA_RUNTIME_H_
#define LIB_CUDA_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace firstframe::cuda {

using StreamHandle = void*;  // cudaStream_t; null is the default stream
using EventHandle = void*;   // cudaEvent_t

struct DeviceProperties {
  int ordinal = 0;
  std::string name;        // "NVIDIA H200"
  std::string pci_bus_id;  // "0000:41:00.0", as in /sys/bus/pci/devices
  std::string uuid;        // "GPU-...", as nvidia-smi prints it
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int copy_engines = 0;
  int numa_node = -1;  // of the host memory nearest to it; -1 unknown
  int64_t memory_bytes = 0;
  int64_t l2_cache_bytes = 0;
  int64_t shared_memory_per_block_bytes = 0;  // with opt-in
  int64_t memory_bandwidth_bytes_per_s = 0;   // bus width x clock; 0 unknown
  bool is_integrated = false;
};

// Versions as CUDA counts them: 1000 x major + 10 x minor.
struct Versions {
  int driver = 0;   // newest CUDA that the installed driver supports; 0 if none
  int runtime = 0;  // that this binary was built with
};

struct MemoryInfo {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t size_bytes = 0;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // --- devices ---
  virtual absl::StatusOr<Versions> GetVersions() = 0;
  virtual absl::StatusOr<int> DeviceCount() = 0;
  virtual absl::StatusOr<DeviceProperties> GetProperties(int ordinal) = 0;
  // Returns whether this process already has a context on `ordinal`. Starts
  // nothing: false also when CUDA was never used or is not there.
  virtual bool HasContext(int ordinal) = 0;
  // Makes `ordinal` current on this thread and creates its context.
  virtual absl::Status SetDevice(int ordinal) = 0;
  virtual absl::StatusOr<int> CurrentDevice() = 0;
  // Of the current device.
  virtual absl::StatusOr<MemoryInfo> GetMemoryInfo() = 0;
  // Waits for all work on the current device.
  virtual absl::Status SynchronizeDevice() = 0;

  // --- memory; ResourceExhausted when there is not enough ---
  virtual absl::StatusOr<void*> Allocate(size_t size_bytes) = 0;
  virtual absl::Status Free(void* pointer) = 0;
  // Ordered on `stream`, from the device's pool; cheap after the first.
  virtual absl::StatusOr<void*> AllocateAsync(size_t size_bytes,
                                              StreamHandle stream) = 0;
  virtual absl::Status FreeAsync(void* pointer, StreamHandle stream) = 0;
  virtual absl::StatusOr<void*> AllocatePinned(size_t size_bytes) = 0;
  virtual absl::Status FreePinned(void* pointer) = 0;
  // Pins memory that already exists. Read-only mappings (a file opened for
  // reading) need `read_only`, which not every platform supports.
  virtual absl::Status RegisterHost(void* pointer, size_t size_bytes,
                                    bool read_only) = 0;
  virtual absl::Status UnregisterHost(void* pointer) = 0;

  // --- copies, ordered on `stream`; directions are found from the pointers.
  // Asynchronous only when host memory is pinned. ---
  virtual absl::Status CopyAsync(const Copy& copy, StreamHandle stream) = 0;
  // One submission for all of them, in no order among themselves.
  virtual absl::Status CopyBatchAsync(absl::Span<const Copy> copies,
                                      StreamHandle stream) = 0;
  // Sets every byte.
  virtual absl::Status FillAsync(void* pointer, unsigned char value,
                                 size_t size_bytes, StreamHandle stream) = 0;

  // --- streams ---
  // Does not wait for the default stream. Lower `priority` runs first; 0 is the
  // default, values out of the device's range are clamped.
  virtual absl::StatusOr<StreamHandle> CreateStream(int priority) = 0;
  virtual absl::Status DestroyStream(StreamHandle stream) = 0;
  virtual absl::Status SynchronizeStream(StreamHandle stream) = 0;
  virtual absl::StatusOr<bool> IsStreamIdle(StreamHandle stream) = 0;
  // Work enqueued on `stream` from now on waits for `event`.
  virtual absl::Status StreamWaitEvent(StreamHandle stream,
                                       EventHandle event) = 0;
  // Calls `function(argument)` on a driver thread once the work before it is
  // done. It must not call CUDA.
  virtual absl::Status LaunchHostFunction(StreamHandle stream,
                                          void (*function)(void*),
                                          void* argument) = 0;

  // --- events ---
  virtual absl::StatusOr<EventHandle> CreateEvent(bool with_timing) = 0;
  virtual absl::Status DestroyEvent(EventHandle event) = 0;
  virtual absl::Status RecordEvent(EventHandle event, StreamHandle stream) = 0;
  // True also for an event that was never recorded.
  virtual absl::StatusOr<bool> IsEventComplete(EventHandle event) = 0;
  virtual absl::Status SynchronizeEvent(EventHandle event) = 0;
  // Both complete, both with timing; resolution is about 500 ns.
  virtual absl::StatusOr<int64_t> ElapsedNs(EventHandle start,
                                            EventHandle end) = 0;
};

// Returns the process's runtime; never null, never destroyed. Starts nothing.
Runtime& GetRuntime();

// Whether this binary was built with a CUDA toolkit.
bool IsBuiltWithCuda();

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_RUNTIME_H_
