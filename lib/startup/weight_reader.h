// Reads a VAE's checkpoint on a thread of its own, while another thread opens
// the driver and makes a context.

#ifndef LIB_STARTUP_WEIGHT_READER_H_
#define LIB_STARTUP_WEIGHT_READER_H_

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "lib/phase/phase.h"
#include "lib/wan_vae/load_weights.h"

namespace firstframe {

// Thread-compatible. Destroying it ends a read that nobody waited for.
class WeightReader {
 public:
  // Begins to read all of `component`'s weights into host memory, with
  // `threads` threads (0: all compute threads). The phase vae.checkpoint_read
  // is on a lane "weights" under this thread's current phase. `is_cancelled`
  // may be empty; it is called on the new thread.
  WeightReader(const VaeComponent& component, int threads,
               std::function<bool()> is_cancelled);
  ~WeightReader();
  WeightReader(const WeightReader&) = delete;
  WeightReader& operator=(const WeightReader&) = delete;

  // Waits for the end, and gives the weights away. Call once.
  absl::StatusOr<VaeWeights> Take();

 private:
  std::atomic<bool> is_abandoned_ = false;
  std::optional<absl::StatusOr<VaeWeights>>
      result_;  // the thread's until joined
  std::thread thread_;
};

// The phase vae.checkpoint_read, on this thread: reads the weights of
// `component`, whose module tree is `tree`.
absl::StatusOr<VaeWeights> ReadWeightsAsPhase(const VaeComponent& component,
                                              const ModuleTree& tree,
                                              const ReadVaeOptions& options);

}  // namespace firstframe

#endif  // LIB_STARTUP_WEIGHT_READER_H_
