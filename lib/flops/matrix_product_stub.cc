#include "absl/status/status.h"
#include "lib/flops/matrix_product.h"

namespace firstframe {

absl::StatusOr<std::unique_ptr<MatrixProduct>> CreateMatrixProduct(
    MathType, int64_t, const cuda::Stream&, const cuda::LibrarySearch&) {
  return absl::UnimplementedError(
      "built without CUDA; rebuild where the CUDA toolkit is installed");
}

}  // namespace firstframe
