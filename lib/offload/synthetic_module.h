// A module of any size, for measuring without a checkpoint.

#ifndef LIB_OFFLOAD_SYNTHETIC_MODULE_H_
#define LIB_OFFLOAD_SYNTHETIC_MODULE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/offload/module.h"

namespace firstframe {

// Returns a module of exactly `size_bytes` of BF16 (rounded up to 2) in
// pageable host memory: blocks of one large, four middling and four small
// tensors
// ("blocks.0.mlp.weight", ...), the large one of `largest_bytes`, and a
// remainder. The bytes differ from place to place. ResourceExhausted, also when
// the cgroup has less left: touching more would end the process.
absl::StatusOr<std::unique_ptr<OffloadModule>> MakeSyntheticModule(
    uint64_t size_bytes, uint64_t largest_bytes = uint64_t{64} << 20);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_SYNTHETIC_MODULE_H_
