// Small modules for tests of the offload.

#ifndef LIB_OFFLOAD_TESTING_H_
#define LIB_OFFLOAD_TESTING_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lib/load/tensor_hash.h"
#include "lib/offload/frozen_guard.h"
#include "lib/offload/module.h"

namespace firstframe::testing {

// A tensor of `size` bytes of its own, the i-th being seed + i.
inline OffloadTensor MakeTensor(std::string name, uint64_t size,
                                unsigned char seed) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  for (uint64_t i = 0; i < size; ++i) {
    (*bytes)[i] = std::byte(static_cast<unsigned char>(seed + i));
  }
  OffloadTensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = DType::kU8;
  tensor.shape = {static_cast<int64_t>(size)};
  tensor.size_bytes = size;
  tensor.data = bytes->data();
  tensor.storage = std::move(bytes);
  return tensor;
}

// Returns whether `tensor` holds what MakeTensor gave it. Reads through the
// pointer: the fake device's memory is the host's.
inline bool Holds(const OffloadTensor& tensor, unsigned char seed) {
  for (uint64_t i = 0; i < tensor.size_bytes; ++i) {
    if (tensor.data[i] != std::byte(static_cast<unsigned char>(seed + i))) {
      return false;
    }
  }
  return true;
}

// The guard's hash on the fake device.
inline DeviceHash HostDeviceHash() {
  return [](const LoadPlan& plan, const std::byte* arena,
            cuda::Runtime&) -> absl::StatusOr<std::vector<uint64_t>> {
    return HashHostArena(plan, arena, 1);
  };
}

}  // namespace firstframe::testing

#endif  // LIB_OFFLOAD_TESTING_H_
