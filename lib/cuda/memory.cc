#include "lib/cuda/memory.h"

#include "lib/base/status_macros.h"

namespace firstframe::cuda {

absl::StatusOr<DeviceBuffer> DeviceBuffer::Allocate(size_t size_bytes,
                                                    Runtime& runtime) {
  DeviceBuffer buffer;
  if (size_bytes == 0) return buffer;
  FF_ASSIGN_OR_RETURN(void* data, runtime.Allocate(size_bytes));
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_bytes_ = size_bytes;
  buffer.runtime_ = &runtime;
  return buffer;
}

absl::StatusOr<DeviceBuffer> DeviceBuffer::AllocateAsync(size_t size_bytes,
                                                         StreamHandle stream,
                                                         Runtime& runtime) {
  DeviceBuffer buffer;
  if (size_bytes == 0) return buffer;
  FF_ASSIGN_OR_RETURN(void* data, runtime.AllocateAsync(size_bytes, stream));
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_bytes_ = size_bytes;
  buffer.stream_ = stream;
  buffer.is_ordered_ = true;
  buffer.runtime_ = &runtime;
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ == nullptr) return;
  // A failure here is an earlier kernel's, already reported where it matters.
  (is_ordered_ ? runtime_->FreeAsync(data_, stream_) : runtime_->Free(data_))
      .IgnoreError();
}

void DeviceBuffer::Swap(DeviceBuffer& other) {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(stream_, other.stream_);
  std::swap(is_ordered_, other.is_ordered_);
  std::swap(runtime_, other.runtime_);
}

absl::StatusOr<PinnedBuffer> PinnedBuffer::Allocate(size_t size_bytes,
                                                    Runtime& runtime) {
  PinnedBuffer buffer;
  if (size_bytes == 0) return buffer;
  FF_ASSIGN_OR_RETURN(void* data, runtime.AllocatePinned(size_bytes));
  buffer.data_ = static_cast<std::byte*>(data);
  buffer.size_bytes_ = size_bytes;
  buffer.runtime_ = &runtime;
  return buffer;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ != nullptr) runtime_->FreePinned(data_).IgnoreError();
}

void PinnedBuffer::Swap(PinnedBuffer& other) {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(runtime_, other.runtime_);
}

absl::StatusOr<HostRegistration> HostRegistration::Register(void* pointer,
                                                            size_t size_bytes,
                                                            bool read_only,
                                                            Runtime& runtime) {
  FF_RETURN_IF_ERROR(runtime.RegisterHost(pointer, size_bytes, read_only));
  HostRegistration registration;
  registration.pointer_ = pointer;
  registration.runtime_ = &runtime;
  return registration;
}

HostRegistration::~HostRegistration() {
  if (pointer_ != nullptr) runtime_->UnregisterHost(pointer_).IgnoreError();
}

void HostRegistration::Swap(HostRegistration& other) {
  std::swap(pointer_, other.pointer_);
  std::swap(runtime_, other.runtime_);
}

}  // namespace firstframe::cuda
