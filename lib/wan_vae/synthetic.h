// Synthetic weights that any language makes bit for bit (docs/design.md,
// "Synthetic checkpoints").
//
// Element i of tensor NAME is u = top24(mix(fnv1a64(NAME) + (i + 1) *
// 0x9E3779B97F4A7C15)) * 2^-23 - 1, scaled by what the name ends in: "*.gamma"
// is 1 + 0.1 u, "*.bias" 0.1 u, "*.weight" u / sqrt(product(shape[1:])), all
// else sqrt(3) u. Each operation rounds to float32 on its own.

#ifndef LIB_WAN_VAE_SYNTHETIC_H_
#define LIB_WAN_VAE_SYNTHETIC_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// Writes elements first, first + 1, ... of tensor `name` of `shape` to
// `values`. Single-threaded, about 1 ns an element; ranges may be filled in
// parallel.
void FillSynthetic(absl::string_view name, absl::Span<const int64_t> shape,
                   int64_t first, absl::Span<float> values);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_SYNTHETIC_H_
