#include "absl/status/status.h"
#include "lib/flops/matrix_product.h"

namespace firstframe {

absl::StatusOr<std::unique_ptr<MatrixProduct>> CreateMatrixProduct(
    MathType, int64_t, const cuda::Stream&, const cuda::LibrarySearch&) {
  return absl::UnimplementedError(
      "built without CUDA; rebuild with --config=cuda");
}

}  // namespace firstframe
