// One float32 tensor in a file: .safetensors, .npy, or .pt for PyTorch; and
// whether two runs' tensors agree.

#ifndef LIB_STARTUP_TENSOR_FILE_H_
#define LIB_STARTUP_TENSOR_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lib/tensor/shape.h"
#include "lib/wan_vae/tiling.h"

namespace firstframe {

// OK for an empty path and for one that ends in .safetensors, .npy or .pt.
absl::Status ValidateTensorPath(absl::string_view path);

// Writes `tensor` under `name` (a .npy has no names; a .pt is the tensor
// itself). The file appears whole or not at all.
absl::Status WriteTensorFile(const std::string& path, absl::string_view name,
                             const FloatTensor& tensor);

// Reads tensor `name`, or the only tensor there is, of a .safetensors file, or
// a .npy, as float32. NotFound with the names there are; InvalidArgument for
// other files.
absl::StatusOr<FloatTensor> ReadTensorFile(const std::string& path,
                                           absl::string_view name);

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

struct TensorDifference {
  bool is_equal = false;  // every element within the tolerance
  Shape expected_shape;   // differs from the tensor's: nothing was compared
  int64_t elements = 0;
  int64_t outside = 0;         // beyond the tolerance, NaN on one side included
  double max_abs = 0;          // over finite pairs
  int64_t first_outside = -1;  // row-major
  double relative_l2 = 0;      // |actual - expected| / |expected|

  std::string ToString() const;
};

// Compares element by element: |actual - expected| <= atol + rtol * |expected|.
// NaN equals NaN, an infinity itself.
TensorDifference CompareTensors(const FloatTensor& actual,
                                const FloatTensor& expected,
                                const Tolerance& tolerance);

}  // namespace firstframe

#endif  // LIB_STARTUP_TENSOR_FILE_H_
