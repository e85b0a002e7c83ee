// The exact cost of one transformer forward, operator by operator.
//
// Derived from the Diffusers implementations (0.42) and equal, to the last
// operation, to what torch 2.11's FlopCounterMode counts on them; the counts
// are in testdata/flops. As there: multiply-adds count two, only matrix
// products and convolutions count, a masked attention costs the full square,
// and padded text rows cost like any other. docs/flops.md lists what that
// leaves out.

#ifndef LIB_FLOPS_TRANSFORMER_MODEL_H_
#define LIB_FLOPS_TRANSFORMER_MODEL_H_

#include "absl/status/statusor.h"
#include "lib/flops/operator_cost.h"
#include "lib/flops/transformer_config.h"

namespace firstframe {

// Prices one forward. InvalidArgument for a config or shape that is not
// positive, OutOfRange when the cost does not fit int64_t. A kUnknown family
// yields one linear operator of 2 * params * tokens.
absl::StatusOr<ForwardCost> TransformerForwardCost(
    const TransformerConfig& config, const ForwardShape& shape);

}  // namespace firstframe

#endif  // LIB_FLOPS_TRANSFORMER_MODEL_H_
