// A module as the offload sees it: named tensors that can be pointed at other
// memory.

#ifndef LIB_OFFLOAD_MODULE_H_
#define LIB_OFFLOAD_MODULE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// In place of a device's ordinal: host memory.
inline constexpr int kHostMemory = -1;

struct OffloadTensor {
  std::string name;  // buffers as "buffer:NAME", beside parameters
  DType dtype = DType::kF32;
  Shape shape;
  uint64_t size_bytes = 0;
  std::byte* data = nullptr;  // of `device`
  int device = kHostMemory;
  // Keeps `data` alive; the memory goes when the last tensor (or other holder)
  // lets go of it.
  std::shared_ptr<const void> storage;
};

// Parameters and buffers. Tied weights are tensors with the same `data`.
// Thread-compatible: nothing may use the tensors while a store moves them.
class OffloadModule {
 public:
  explicit OffloadModule(std::vector<OffloadTensor> tensors)
      : tensors_(std::move(tensors)) {}
  OffloadModule(const OffloadModule&) = delete;
  OffloadModule& operator=(const OffloadModule&) = delete;

  absl::Span<const OffloadTensor> tensors() const { return tensors_; }
  absl::Span<OffloadTensor> mutable_tensors() {
    return absl::MakeSpan(tensors_);
  }
  // Of all tensors, tied ones once for each name.
  uint64_t size_bytes() const;

  // Claims the module for one store. Returns false when another has it.
  bool Claim() { return !is_claimed_.exchange(true); }
  void Disclaim() { is_claimed_ = false; }

 private:
  std::vector<OffloadTensor> tensors_;
  std::atomic<bool> is_claimed_ = false;
};

// Memory that one or more tensors lie in.
struct StorageRange {
  struct Member {
    uint32_t tensor = 0;  // its index in the module
    uint64_t offset = 0;  // of its data in the range
  };
  std::byte* data = nullptr;
  uint64_t size_bytes = 0;
  int device = kHostMemory;
  std::vector<Member> members;  // by tensor
};

// Returns the memory of all tensors, each byte once: tensors that are tied, or
// are views of one another, share a range. Ranges come in the order of their
// first tensor. Tensors of no bytes are in none.
std::vector<StorageRange> FindStorageRanges(const OffloadModule& module);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_MODULE_H_
