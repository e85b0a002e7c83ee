// A Wan VAE on the CPU: oneDNN convolutions and matrix products, our own
// kernels for the rest, float32 throughout.

#ifndef LIB_WAN_VAE_CPU_WAN_VAE_H_
#define LIB_WAN_VAE_CPU_WAN_VAE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {

struct CpuWanVaeOptions {
  int threads = 0;  // 0: all that the process may run on
  // The latent size for which Finalize lays the weights out. Another size is as
  // correct, and as fast after a first run that may lay them out again.
  int64_t likely_height = 60;
  int64_t likely_width = 104;
};

// A WanVae that says what its last run computed.
class CpuWanVae : public WanVae {
 public:
  // Floating-point operations of the last Decode or Encode that were in fact
  // done: convolutions (see ConvFlops) and attention products.
  virtual int64_t LastRunFlops() const = 0;

 protected:
  using WanVae::WanVae;
};

// Constructs the graph. `config` must be valid. Finalize lays out the decoder's
// weights; the encoder's follow at the first Encode. Unavailable when oneDNN
// does not start.
absl::StatusOr<std::unique_ptr<CpuWanVae>> BuildCpuWanVae(
    const WanVaeConfig& config, const CpuWanVaeOptions& options);

// Returns "2.6.3", of the library that is loaded.
std::string OneDnnVersion();

}  // namespace firstframe

#endif  // LIB_WAN_VAE_CPU_WAN_VAE_H_
