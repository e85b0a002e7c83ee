// The ways to load a checkpoint that weight_bench compares.

#ifndef LIB_LOAD_LOAD_MODE_H_
#define LIB_LOAD_LOAD_MODE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace firstframe {

enum class LoadMode {
  // As FastVideo's benchmarks do it, tensor by tensor: the baselines.
  kToCpu,                 // out of a file mapping; every byte is touched
  kToGpu,                 // rank 0 reads and broadcasts, as kBroadcastSync
  kIndependentPerTensor,  // every rank reads everything
  kBroadcastSync,         // rank 0 reads; one broadcast each, waited for
  kBroadcastAsync,        // the same, all waited for at the end
  // Ours.
  kHost,               // parallel reads into host memory
  kIndependent,        // every rank loads everything through the ring
  kRegistered,         // copies straight out of the pinned file mapping
  kCufile,             // cuFile, direct or in its compat mode, which it says
  kBroadcastBucketed,  // rank 0 loads; large broadcasts overlap its copies
  kShardAllgather,     // every rank loads 1/N and gathers the rest
  kAuto,               // the one of ours that the measured limits favour
};

struct LoadModeInfo {
  LoadMode mode;
  absl::string_view name;  // "broadcast_bucketed"
  absl::string_view what;
  bool is_baseline;    // per tensor, as FastVideo
  bool needs_device;   // meaningless without one
  bool is_collective;  // moves data between ranks
};

const LoadModeInfo& GetLoadModeInfo(LoadMode mode);
const std::vector<LoadModeInfo>& AllLoadModes();

// Parses "to_cpu,independent". InvalidArgument with the nearest name.
absl::StatusOr<std::vector<LoadMode>> ParseLoadModes(absl::string_view text);

// FastVideo's modes and ours, as far as they differ for so many ranks with or
// without a device.
std::vector<LoadMode> DefaultLoadModes(int ranks, bool has_device);

}  // namespace firstframe

#endif  // LIB_LOAD_LOAD_MODE_H_
