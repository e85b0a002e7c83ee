#include "lib/wan_vae/cpu_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace firstframe {
namespace {

constexpr int64_t kAlignment = 64;
// Large buffers sit on huge pages: a decode sweeps through gigabytes.
constexpr int64_t kHugePage = int64_t{2} << 20;
// A free block serves a request that fills at least a quarter of it.
constexpr int64_t kMostWaste = 4;

}  // namespace

CpuBuffer& CpuBuffer::operator=(CpuBuffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

CpuBuffer::~CpuBuffer() {
  if (pool_ != nullptr) pool_->free_.push_back({data_, capacity_});
}

BufferPool::~BufferPool() { ReleaseFree(); }

void BufferPool::ReleaseFree() {
  for (const Block& block : free_) {
    std::free(block.data);
    allocated_bytes_ -= block.capacity * static_cast<int64_t>(sizeof(float));
  }
  free_.clear();
}

absl::StatusOr<CpuBuffer> BufferPool::Acquire(int64_t size) {
  size_t best = free_.size();
  for (size_t i = 0; i < free_.size(); ++i) {
    const int64_t capacity = free_[i].capacity;
    if (capacity < size || capacity / kMostWaste > size) continue;
    if (best == free_.size() || capacity < free_[best].capacity) best = i;
  }
  CpuBuffer buffer;
  buffer.size_ = size;
  if (best < free_.size()) {
    buffer.data_ = free_[best].data;
    buffer.capacity_ = free_[best].capacity;
    free_.erase(free_.begin() + static_cast<int64_t>(best));
    buffer.pool_ = this;
    return buffer;
  }
  const int64_t asked = size * static_cast<int64_t>(sizeof(float));
  const int64_t alignment = asked >= 2 * kHugePage ? kHugePage : kAlignment;
  const int64_t bytes = (asked + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, std::max(bytes, alignment));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a buffer of ", bytes, " bytes beside ",
                     allocated_bytes_, " already held"));
  }
  if (alignment == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
  buffer.data_ = static_cast<float*>(data);
  buffer.capacity_ = bytes / static_cast<int64_t>(sizeof(float));
  buffer.pool_ = this;
  allocated_bytes_ += buffer.capacity_ * static_cast<int64_t>(sizeof(float));
  return buffer;
}

}  // namespace firstframe
