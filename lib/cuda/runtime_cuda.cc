#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cuda_runtime_api.h"
#include "lib/cuda/cuda_status.h"
#include "lib/cuda/runtime.h"

namespace firstframe::cuda {
namespace {

cudaStream_t ToStream(StreamHandle stream) {
  return static_cast<cudaStream_t>(stream);
}
cudaEvent_t ToEvent(EventHandle event) {
  return static_cast<cudaEvent_t>(event);
}

// "GPU-8-4-4-4-12" from sixteen bytes.
std::string FormatUuid(const cudaUUID_t& uuid) {
  const std::string hex =
      absl::BytesToHexString(absl::string_view(uuid.bytes, sizeof(uuid.bytes)));
  return absl::StrCat("GPU-", hex.substr(0, 8), "-", hex.substr(8, 4), "-",
                      hex.substr(12, 4), "-", hex.substr(16, 4), "-",
                      hex.substr(20));
}

std::string Hex(const void* pointer) {
  return absl::StrCat("0x", absl::Hex(reinterpret_cast<uintptr_t>(pointer)));
}

// Zero when the device has no such attribute.
int64_t Attribute(cudaDeviceAttr attribute, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return value;
}

class CudaRuntime final : public Runtime {
 public:
  absl::StatusOr<Versions> GetVersions() override {
    Versions versions;
    FF_CUDA_RETURN_IF_ERROR(cudaDriverGetVersion(&versions.driver));
    FF_CUDA_RETURN_IF_ERROR(cudaRuntimeGetVersion(&versions.runtime));
    return versions;
  }

  absl::StatusOr<int> DeviceCount() override {
    int count = 0;
    FF_CUDA_RETURN_IF_ERROR(cudaGetDeviceCount(&count));
    return count;
  }

  absl::StatusOr<DeviceProperties> GetProperties(int ordinal) override {
    cudaDeviceProp all;
    FF_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&all, ordinal));
    char bus_id[32] = "";
    FF_CUDA_RETURN_IF_ERROR(
        cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), ordinal));
    DeviceProperties properties;
    properties.ordinal = ordinal;
    properties.name = all.name;
    properties.pci_bus_id = bus_id;
    for (char& c : properties.pci_bus_id) {
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    properties.uuid = FormatUuid(all.uuid);
    properties.compute_major = all.major;
    properties.compute_minor = all.minor;
    properties.multiprocessors = all.multiProcessorCount;
    properties.copy_engines = all.asyncEngineCount;
    properties.numa_node =
        static_cast<int>(Attribute(cudaDevAttrHostNumaId, ordinal));
    properties.memory_bytes = static_cast<int64_t>(all.totalGlobalMem);
    properties.l2_cache_bytes = all.l2CacheSize;
    properties.shared_memory_per_block_bytes =
        static_cast<int64_t>(all.sharedMemPerBlockOptin);
    // The clock is in kHz and counts one edge; memory moves data on both.
    properties.memory_bandwidth_bytes_per_s =
        2 * Attribute(cudaDevAttrMemoryClockRate, ordinal) * 1000 *
        (all.memoryBusWidth / 8);
    properties.is_integrated = all.integrated != 0;
    return properties;
  }

  bool HasContext(int ordinal) override {
    // RTLD_NOLOAD: a process that never touched the driver must not load it to
    // find that out. The driver itself answers "not initialised" otherwise.
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr) return false;
    using GetState = int (*)(int device, unsigned int* flags, int* active);
    const auto get_state =
        reinterpret_cast<GetState>(dlsym(driver, "cuDevicePrimaryCtxGetState"));
    unsigned int flags = 0;
    int active = 0;
    const bool known = get_state != nullptr &&
                       get_state(ordinal, &flags, &active) == 0 && active != 0;
    dlclose(driver);
    return known;
  }

  absl::Status SetDevice(int ordinal) override {
    FF_CUDA_RETURN_IF_ERROR(cudaSetDevice(ordinal));
    // Before CUDA 12 cudaSetDevice was lazy; freeing nothing is the documented
    // way to force the context.
    FF_CUDA_RETURN_IF_ERROR(cudaFree(nullptr));
    return absl::OkStatus();
  }

  absl::StatusOr<int> CurrentDevice() override {
    int ordinal = 0;
    FF_CUDA_RETURN_IF_ERROR(cudaGetDevice(&ordinal));
    return ordinal;
  }

  absl::StatusOr<MemoryInfo> GetMemoryInfo() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    FF_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
    return MemoryInfo{static_cast<int64_t>(free_bytes),
                      static_cast<int64_t>(total_bytes)};
  }

  absl::Status SynchronizeDevice() override {
    FF_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
    return absl::OkStatus();
  }

  absl::StatusOr<void*> Allocate(size_t size_bytes) override {
    void* pointer = nullptr;
    const cudaError_t error = cudaMalloc(&pointer, size_bytes);
    return Allocated(error, pointer, size_bytes, "cudaMalloc");
  }

  absl::Status Free(void* pointer) override {
    FF_CUDA_RETURN_IF_ERROR(cudaFree(pointer));
    return absl::OkStatus();
  }

  absl::StatusOr<void*> AllocateAsync(size_t size_bytes,
                                      StreamHandle stream) override {
    void* pointer = nullptr;
    const cudaError_t error =
        cudaMallocAsync(&pointer, size_bytes, ToStream(stream));
    return Allocated(error, pointer, size_bytes, "cudaMallocAsync");
  }

  absl::Status FreeAsync(void* pointer, StreamHandle stream) override {
    FF_CUDA_RETURN_IF_ERROR(cudaFreeAsync(pointer, ToStream(stream)));
    return absl::OkStatus();
  }

  absl::StatusOr<void*> AllocatePinned(size_t size_bytes) override {
    void* pointer = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&pointer, size_bytes, cudaHostAllocPortable);
    return Allocated(error, pointer, size_bytes, "cudaHostAlloc");
  }

  absl::Status FreePinned(void* pointer) override {
    FF_CUDA_RETURN_IF_ERROR(cudaFreeHost(pointer));
    return absl::OkStatus();
  }

  absl::Status RegisterHost(void* pointer, size_t size_bytes,
                            bool read_only) override {
    const unsigned int flags =
        cudaHostRegisterPortable | (read_only ? cudaHostRegisterReadOnly : 0);
    FF_CUDA_RETURN_IF_ERROR(cudaHostRegister(pointer, size_bytes, flags));
    return absl::OkStatus();
  }

  absl::Status UnregisterHost(void* pointer) override {
    FF_CUDA_RETURN_IF_ERROR(cudaHostUnregister(pointer));
    return absl::OkStatus();
  }

  absl::Status CopyAsync(const Copy& copy, StreamHandle stream) override {
    const cudaError_t error =
        cudaMemcpyAsync(copy.to, copy.from, copy.size_bytes, cudaMemcpyDefault,
                        ToStream(stream));
    if (error == cudaSuccess) return absl::OkStatus();
    return ToStatus(error, absl::StrCat("cudaMemcpyAsync of ", copy.size_bytes,
                                        " bytes from ", Hex(copy.from), " to ",
                                        Hex(copy.to)));
  }

  absl::Status CopyBatchAsync(absl::Span<const Copy> copies,
                              StreamHandle stream) override;

  absl::Status FillAsync(void* pointer, unsigned char value, size_t size_bytes,
                         StreamHandle stream) override {
    FF_CUDA_RETURN_IF_ERROR(
        cudaMemsetAsync(pointer, value, size_bytes, ToStream(stream)));
    return absl::OkStatus();
  }

  absl::StatusOr<StreamHandle> CreateStream(int priority) override {
    cudaStream_t stream = nullptr;
    FF_CUDA_RETURN_IF_ERROR(
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    return static_cast<StreamHandle>(stream);
  }

  absl::Status DestroyStream(StreamHandle stream) override {
    FF_CUDA_RETURN_IF_ERROR(cudaStreamDestroy(ToStream(stream)));
    return absl::OkStatus();
  }

  absl::Status SynchronizeStream(StreamHandle stream) override {
    FF_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(ToStream(stream)));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> IsStreamIdle(StreamHandle stream) override {
    return IsReady(cudaStreamQuery(ToStream(stream)), "cudaStreamQuery");
  }

  absl::Status StreamWaitEvent(StreamHandle stream,
                               EventHandle event) override {
    FF_CUDA_RETURN_IF_ERROR(
        cudaStreamWaitEvent(ToStream(stream), ToEvent(event)));
    return absl::OkStatus();
  }

  absl::Status LaunchHostFunction(StreamHandle stream, void (*function)(void*),
                                  void* argument) override {
    FF_CUDA_RETURN_IF_ERROR(
        cudaLaunchHostFunc(ToStream(stream), function, argument));
    return absl::OkStatus();
  }

  absl::StatusOr<EventHandle> CreateEvent(bool with_timing) override {
    cudaEvent_t event = nullptr;
    FF_CUDA_RETURN_IF_ERROR(cudaEventCreateWithFlags(
        &event, with_timing ? cudaEventDefault : cudaEventDisableTiming));
    return static_cast<EventHandle>(event);
  }

  absl::Status DestroyEvent(EventHandle event) override {
    FF_CUDA_RETURN_IF_ERROR(cudaEventDestroy(ToEvent(event)));
    return absl::OkStatus();
  }

  absl::Status RecordEvent(EventHandle event, StreamHandle stream) override {
    FF_CUDA_RETURN_IF_ERROR(cudaEventRecord(ToEvent(event), ToStream(stream)));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> IsEventComplete(EventHandle event) override {
    return IsReady(cudaEventQuery(ToEvent(event)), "cudaEventQuery");
  }

  absl::Status SynchronizeEvent(EventHandle event) override {
    FF_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(ToEvent(event)));
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> ElapsedNs(EventHandle start,
                                    EventHandle end) override {
    float milliseconds = 0;
    FF_CUDA_RETURN_IF_ERROR(
        cudaEventElapsedTime(&milliseconds, ToEvent(start), ToEvent(end)));
    return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }

 private:
  // Takes the pointer's value: call it after the allocation, not around it, as
  // the order in which arguments are evaluated is the compiler's.
  static absl::StatusOr<void*> Allocated(cudaError_t error, void* pointer,
                                         size_t size_bytes,
                                         absl::string_view call) {
    if (error == cudaSuccess) return pointer;
    return ToStatus(error, absl::StrCat(call, " of ", size_bytes, " bytes"));
  }

  static absl::StatusOr<bool> IsReady(cudaError_t error,
                                      absl::string_view call) {
    if (error == cudaSuccess) return true;
    if (error == cudaErrorNotReady) {
      cudaGetLastError();  // "not ready" would look like a failed launch later
      return false;
    }
    return ToStatus(error, call);
  }
};

absl::Status CudaRuntime::CopyBatchAsync(absl::Span<const Copy> copies,
                                         StreamHandle stream) {
#if CUDART_VERSION >= 13000
  // Refused for the default stream; one item gains nothing.
  if (stream != nullptr && copies.size() > 1) {
    std::vector<void*> to(copies.size());
    std::vector<const void*> from(copies.size());
    std::vector<size_t> sizes(copies.size());
    for (size_t i = 0; i < copies.size(); ++i) {
      to[i] = copies[i].to;
      from[i] = copies[i].from;
      sizes[i] = copies[i].size_bytes;
    }
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    const cudaError_t error = cudaMemcpyBatchAsync(
        to.data(), from.data(), sizes.data(), copies.size(), &attributes,
        &first, 1, ToStream(stream));
    // Drivers before 12.8 lack it, and it takes no zero sizes or pageable
    // memory; the loop below takes both.
    if (error == cudaSuccess) return absl::OkStatus();
    if (error != cudaErrorNotSupported && error != cudaErrorInvalidValue &&
        error != cudaErrorCallRequiresNewerDriver) {
      return ToStatus(error, "cudaMemcpyBatchAsync");
    }
    cudaGetLastError();
  }
#endif
  for (const Copy& copy : copies) {
    if (absl::Status status = CopyAsync(copy, stream); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace

Runtime& GetRuntime() {
  static Runtime* const runtime = new CudaRuntime;
  return *runtime;
}

bool IsBuiltWithCuda() { return true; }

}  // namespace firstframe::cuda
