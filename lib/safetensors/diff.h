// Compares two checkpoints tensor by tensor: names, shapes, element types,
// values.

#ifndef LIB_SAFETENSORS_DIFF_H_
#define LIB_SAFETENSORS_DIFF_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// How the values of two tensors of one shape differ, in float64 over float32
// readings of the elements. Elements count as equal when they have the same
// bits, or for two element types the same value; NaN equals NaN.
struct ValueDifference {
  uint64_t elements = 0;
  uint64_t differing = 0;
  uint64_t non_finite = 0;  // of the differing ones, where either is not finite
  double max_abs = 0;       // over the differing finite ones
  // sqrt(sum (a-b)^2 / sum a^2) over finite pairs; none when sum a^2 is 0.
  std::optional<double> relative_l2;
};

struct TensorDifference {
  enum class Kind { kOnlyInA, kOnlyInB, kShape, kDType, kValues };
  Kind kind;
  std::string tensor;
  DType dtype_a = DType::kF32, dtype_b = DType::kF32;
  Shape shape_a, shape_b;
  // For kDType and kValues: none for types that have no float32 reading (C64,
  // F6) and for kDType when those differ.
  std::optional<ValueDifference> values;
};

struct DiffTotals {
  uint64_t compared = 0;  // tensors that both have
  uint64_t equal = 0;
  uint64_t only_in_a = 0;
  uint64_t only_in_b = 0;
  uint64_t different = 0;

  bool is_equal() const {
    return equal == compared && only_in_a + only_in_b == 0;
  }
};

// Calls `visit` for each tensor that differs: A's tensors in their order, then
// what only B has. Reads through buffers of a few MiB. Errors from reading.
absl::StatusOr<DiffTotals> DiffCheckpoints(
    const Checkpoint& a, const Checkpoint& b,
    const std::function<void(const TensorDifference&)>& visit);

void WriteDifferenceText(const TensorDifference& difference, std::ostream& out);
void WriteDifferenceJsonl(const TensorDifference& difference,
                          std::ostream& out);
void WriteDiffTotalsText(const DiffTotals& totals, std::ostream& out);
void WriteDiffTotalsJsonl(const DiffTotals& totals, std::ostream& out);

}  // namespace firstframe

#endif  // LIB_SAFETENSORS_DIFF_H_
