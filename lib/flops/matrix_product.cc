#include "lib/flops/matrix_product.h"

namespace firstframe {

ProductTypes ProductTypesOf(MathType math) {
  switch (math) {
    case MathType::kFp32:
    case MathType::kTf32:
      return {DType::kF32, DType::kF32};
    case MathType::kBf16:
      return {DType::kBF16, DType::kBF16};
    case MathType::kFp16:
      return {DType::kF16, DType::kF16};
    case MathType::kFp8:
      return {DType::kF8E4M3, DType::kBF16};
  }
  return {DType::kF32, DType::kF32};
}

}  // namespace firstframe
