// The --math flag.

#ifndef LIB_WAN_VAE_CUDA_MATH_MODE_H_
#define LIB_WAN_VAE_CUDA_MATH_MODE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "lib/wan_vae/cuda/conv_arguments.h"

namespace firstframe::cuda {

constexpr absl::string_view MathModeName(MathMode mode) {
  switch (mode) {
    case MathMode::kFp32:
      return "fp32";
    case MathMode::kTf32:
      return "tf32";
    case MathMode::kBf16:
      return "bf16";
  }
  return "";
}

// InvalidArgument for other names.
inline absl::StatusOr<MathMode> ParseMathMode(absl::string_view name) {
  for (const MathMode mode :
       {MathMode::kFp32, MathMode::kTf32, MathMode::kBf16}) {
    if (name == MathModeName(mode)) return mode;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("math '", name, "': expected fp32, tf32 or bf16"));
}

}  // namespace firstframe::cuda

#endif  // LIB_WAN_VAE_CUDA_MATH_MODE_H_
