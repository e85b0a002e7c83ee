#include "lib/startup/weight_reader.h"

#include <utility>

#include "lib/wan_vae/module_tree.h"

namespace firstframe {

absl::StatusOr<VaeWeights> ReadWeightsAsPhase(const VaeComponent& component,
                                              const ModuleTree& tree,
                                              const ReadVaeOptions& options) {
  return RunPhase("vae.checkpoint_read", [&](ScopedPhase& phase) {
    absl::StatusOr<VaeWeights> read =
        ReadVaeWeights(component.checkpoint, component.config, tree, options);
    if (read.ok()) phase.SetAttribute("read_bytes", read->size_bytes);
    return read;
  });
}

WeightReader::WeightReader(const VaeComponent& component, int threads,
                           std::function<bool()> is_cancelled) {
  const auto is_over = [this, is_cancelled = std::move(is_cancelled)] {
    return is_abandoned_.load(std::memory_order_relaxed) ||
           (is_cancelled && is_cancelled());
  };
  thread_ =
      std::thread([this, component, threads, is_over, anchor = CurrentPhase()] {
        const PhaseCollector collector(anchor, "weights");
        const ModuleTree tree = BuildModuleTree(component.config);
        result_ = ReadWeightsAsPhase(
            component, tree, {.threads = threads, .is_cancelled = is_over});
      });
}

WeightReader::~WeightReader() {
  is_abandoned_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<VaeWeights> WeightReader::Take() {
  thread_.join();
  return *std::move(result_);
}

}  // namespace firstframe
