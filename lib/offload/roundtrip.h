// The baseline: a module moved as module.to() moves it.

#ifndef LIB_OFFLOAD_ROUNDTRIP_H_
#define LIB_OFFLOAD_ROUNDTRIP_H_

#include "absl/status/status.h"
#include "lib/cuda/runtime.h"
#include "lib/offload/module.h"

namespace firstframe {

// Moves each tensor to `device` (or kHostMemory) by itself: new memory,
// pageable on the host, one copy, and the old memory let go. Waits for each
// copy, as a copy of pageable memory does. Tied tensors stay tied. Errors of
// the device leave the module half moved, but whole.
absl::Status MoveModule(OffloadModule& module, int device,
                        cuda::Runtime& runtime);

}  // namespace firstframe

#endif  // LIB_OFFLOAD_ROUNDTRIP_H_
