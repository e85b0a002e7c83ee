// Owned device memory, pinned host memory and pinned registrations.

#ifndef LIB_CUDA_MEMORY_H_
#define LIB_CUDA_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/cuda/runtime.h"

namespace firstframe::cuda {

// Device memory, aligned to 256 bytes, contents undefined. Movable,
// thread-compatible. Empty when default-constructed or of size 0.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;

  // ResourceExhausted with the size when it does not fit.
  static absl::StatusOr<DeviceBuffer> Allocate(size_t size_bytes,
                                               Runtime& runtime = GetRuntime());

  // Allocates in the order of `stream` and frees the same way, without waiting
  // for the device. `stream` must outlive the buffer.
  static absl::StatusOr<DeviceBuffer> AllocateAsync(
      size_t size_bytes, StreamHandle stream, Runtime& runtime = GetRuntime());

  DeviceBuffer(DeviceBuffer&& other) noexcept { Swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~DeviceBuffer();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  bool empty() const { return size_bytes_ == 0; }

 private:
  void Swap(DeviceBuffer& other);

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  StreamHandle stream_ = nullptr;
  bool is_ordered_ = false;  // freed in the order of stream_
  Runtime* runtime_ = nullptr;
};

// Page-locked host memory that every device can reach, page-aligned. Slow to
// allocate (about 1 ms per 4 MB): take it once and reuse it.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;

  static absl::StatusOr<PinnedBuffer> Allocate(size_t size_bytes,
                                               Runtime& runtime = GetRuntime());

  PinnedBuffer(PinnedBuffer&& other) noexcept { Swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~PinnedBuffer();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  absl::Span<std::byte> span() const { return {data_, size_bytes_}; }

 private:
  void Swap(PinnedBuffer& other);

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  Runtime* runtime_ = nullptr;
};

// Pins memory of the caller's for as long as the object lives.
class HostRegistration {
 public:
  HostRegistration() = default;

  // `pointer` and the size are rounded outwards to whole pages by the driver.
  // `read_only` for mappings without write permission (Unimplemented where the
  // platform cannot pin those).
  static absl::StatusOr<HostRegistration> Register(
      void* pointer, size_t size_bytes, bool read_only = false,
      Runtime& runtime = GetRuntime());

  HostRegistration(HostRegistration&& other) noexcept { Swap(other); }
  HostRegistration& operator=(HostRegistration&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~HostRegistration();

 private:
  void Swap(HostRegistration& other);

  void* pointer_ = nullptr;
  Runtime* runtime_ = nullptr;
};

}  // namespace firstframe::cuda

#endif  // LIB_CUDA_MEMORY_H_
