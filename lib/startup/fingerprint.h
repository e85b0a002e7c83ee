// Which files a VAE is read from, and what tells it from another.

#ifndef LIB_STARTUP_FINGERPRINT_H_
#define LIB_STARTUP_FINGERPRINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/wan_vae/config.h"

namespace firstframe {

// Returns the checkpoint files of the VAE that `model_path` means, looking at
// names and first bytes alone. Errors of FindVaeComponent.
absl::StatusOr<std::vector<std::string>> VaeFiles(
    const std::string& model_path);

// Returns the SHA-256, in hex, over the configuration, and each file's name,
// size and tensors (name, type, shape, offsets). Values are not covered.
std::string FingerprintCheckpoint(const Checkpoint& checkpoint,
                                  const WanVaeConfig& config);

}  // namespace firstframe

#endif  // LIB_STARTUP_FINGERPRINT_H_
