// CUDA errors as absl::Status.
//
// A machine without what CUDA needs is Unavailable, with the package that
// brings it; device or pinned memory that ran out is ResourceExhausted. Only
// *_cuda.cc and *.cu files need this header; it includes no CUDA header, an
// error code is its number (cudaError_t of the CUDA runtime, CUDA 13.0).

#ifndef LIB_CUDA_CUDA_STATUS_H_
#define LIB_CUDA_CUDA_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace firstframe::cuda {

// Returns the status of error `code`, or OK for 0. `name` and `description` are
// what the runtime calls it; `call` is what failed, as written in the source.
absl::Status StatusFromError(int code, absl::string_view name,
                             absl::string_view description,
                             absl::string_view call);

// Same, with the names asked of the runtime. Clears the thread's last error, so
// that a later, unrelated check does not report this one again.
absl::Status ToStatus(int code, absl::string_view call);

}  // namespace firstframe::cuda

// Returns from the enclosing function when the CUDA runtime call fails. After a
// kernel launch: FF_CUDA_RETURN_IF_ERROR(cudaGetLastError()).
#define FF_CUDA_RETURN_IF_ERROR(call)                             \
  do {                                                            \
    if (const int ff_cuda_error_ = (call); ff_cuda_error_ != 0) { \
      return ::firstframe::cuda::ToStatus(ff_cuda_error_, #call); \
    }                                                             \
  } while (false)

#endif  // LIB_CUDA_CUDA_STATUS_H_
