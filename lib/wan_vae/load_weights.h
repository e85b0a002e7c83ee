// From files on disk to a WanVae that can run, in steps that can be timed one
// by one.

#ifndef LIB_WAN_VAE_LOAD_WEIGHTS_H_
#define LIB_WAN_VAE_LOAD_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/load/staging.h"
#include "lib/safetensors/checkpoint.h"
#include "lib/tensor/tensor.h"
#include "lib/wan_vae/config.h"
#include "lib/wan_vae/module_tree.h"
#include "lib/wan_vae/wan_vae.h"

namespace firstframe {

// Where a VAE lies and how it is built.
struct VaeComponent {
  std::string folder;       // holds config.json
  std::string checkpoint;   // what Checkpoint::Open takes
  std::string config_path;  // empty: none, the Wan 2.1 defaults are used
  WanVaeConfig config;
};

// Finds the VAE that `path` means: a component folder (config.json beside the
// weights), a pipeline folder with such a folder "vae" in it, or one
// safetensors file. A file takes the config.json beside it, or, without one, is
// a single-file checkpoint of the published model. NotFound, with what was
// looked for; errors of ParseWanVaeConfig.
absl::StatusOr<VaeComponent> FindVaeComponent(const std::string& path);

// The tensors of a checkpoint that are a model's parameters, in host memory.
struct VaeWeights {
  Checkpoint checkpoint;
  // By ModuleTree::parameters, type as stored; views of the arenas.
  std::vector<TensorView> values;
  uint64_t size_bytes = 0;
  // Apart, because a model may keep one (WanVae::TakeParameters).
  std::shared_ptr<const HostArena> decoder_arena;
  std::shared_ptr<const HostArena> encoder_arena;
  // What was not read the fast way, in words (lib/load/loader.h).
  std::vector<std::string> degraded;

  // Frees the tensors once the model has its own.
  void ReleaseValues() {
    values.clear();
    decoder_arena.reset();
    encoder_arena.reset();
  }
};

struct ReadVaeOptions {
  int threads = 0;                     // 0: all compute threads
  std::function<bool()> is_cancelled;  // true ends it in Cancelled
};

// Checks the headers against the model (see MatchParameters), then loads every
// tensor (lib/load), on all compute threads (lib/wan_vae/parallel.h). Nothing
// is read when anything is wrong. Errors name `checkpoint`. Needs no device, so
// it may run while one is set up.
absl::StatusOr<VaeWeights> ReadVaeWeights(const std::string& checkpoint,
                                          const WanVaeConfig& config,
                                          const ModuleTree& tree,
                                          const ReadVaeOptions& options = {});

// Lets `model` take what it can, and converts and stores the rest, on all
// compute threads.
absl::Status AssignVaeWeights(const VaeWeights& weights, WanVae& model);

// All of it: AllocateParameters, ReadVaeWeights, AssignVaeWeights, Finalize.
absl::Status LoadVaeWeights(const std::string& checkpoint, WanVae& model);

}  // namespace firstframe

#endif  // LIB_WAN_VAE_LOAD_WEIGHTS_H_
