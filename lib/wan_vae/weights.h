// Which tensors of a checkpoint are which parameters of a Wan VAE.

#ifndef LIB_WAN_VAE_WEIGHTS_H_
#define LIB_WAN_VAE_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/module_tree.h"

namespace firstframe {

// Returns the name that the original Wan repository gives to the parameter
// called `diffusers_name`: "decoder.middle.0.residual.2.weight", as in
// wan_2.1_vae.safetensors.
std::string OriginalName(absl::string_view diffusers_name,
                         const WanVaeConfig& config);

// Finds each parameter of `tree` among `tensors` (names, types and shapes; the
// bytes may be absent), which follow either scheme:
// result[i] is the position in `tensors` of tree.parameters[i]. InvalidArgument
// when any tensor is missing, unexpected, mis-shaped, given twice or of a type
// other than F64, F32, F16 and BF16, with all of them in one message.
absl::StatusOr<std::vector<int>> MatchParameters(
    const WanVaeConfig& config, const ModuleTree& tree,
    absl::Span<const NamedTensor> tensors);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_WEIGHTS_H_
