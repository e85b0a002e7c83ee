// Aligned float32 buffers that are reused from layer to layer.

#ifndef LIB_WAN_VAE_CPU_BUFFER_H_
#define LIB_WAN_VAE_CPU_BUFFER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace firstframe {

class BufferPool;

// `size()` floats at a 64-byte boundary, uninitialised. Movable; goes back to
// its pool, which must outlive it.
class CpuBuffer {
 public:
  CpuBuffer() = default;
  CpuBuffer(CpuBuffer&& other) noexcept { *this = std::move(other); }
  CpuBuffer& operator=(CpuBuffer&& other) noexcept;
  ~CpuBuffer();

  float* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  friend class BufferPool;
  BufferPool* pool_ = nullptr;
  float* data_ = nullptr;
  int64_t size_ = 0;      // asked for
  int64_t capacity_ = 0;  // allocated
};

// Thread-compatible.
class BufferPool {
 public:
  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // Returns a free buffer that fits well, or a new one. ResourceExhausted when
  // the system has no memory left.
  absl::StatusOr<CpuBuffer> Acquire(int64_t size);

  // Bytes allocated now, in use or free.
  int64_t allocated_bytes() const { return allocated_bytes_; }

  // Gives free buffers back to the system.
  void ReleaseFree();

 private:
  friend class CpuBuffer;
  struct Block {
    float* data;
    int64_t capacity;
  };
  std::vector<Block> free_;
  int64_t allocated_bytes_ = 0;
};

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_BUFFER_H_
