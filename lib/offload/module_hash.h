// Hashes of a module's tensors wherever they are, through none of the paths
// that moved them: for proof that a cycle changed nothing.

#ifndef LIB_OFFLOAD_MODULE_HASH_H_
#define LIB_OFFLOAD_MODULE_HASH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/module.h"

namespace firstframe {

// Returns HashTensor of each tensor. Device memory is copied to the host in
// pieces and hashed there. `runtime` null: all tensors are on the host.
absl::StatusOr<std::vector<uint64_t>> HashModule(const OffloadModule& module,
                                                 cuda::Runtime* runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_MODULE_HASH_H_
