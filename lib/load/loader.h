// Loads a checkpoint into one arena, in host or device memory, at the speed of
// whatever binds: the one call that other libraries make.
//
//   FF_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded,
//                       LoadCheckpoint(source, LoadOptions()));
//   for (const LoadedTensor& tensor : loaded.tensors) ...
//
// CheckpointLoader is the same in steps, for whoever loads again and again with
// the same ring (weight_bench) or a part at a time (ranks of a group).

#ifndef LIB_LOAD_LOADER_H_
#define LIB_LOAD_LOADER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/load/memory_budget.h"
#include "lib/load/numa.h"
#include "lib/load/plan.h"
#include "lib/load/residency.h"
#include "lib/load/residency_map.h"
#include "lib/load/sources.h"
#include "lib/load/staging.h"
#include "lib/load/transfer.h"
#include "lib/tensor/dtype.h"
#include "lib/tensor/shape.h"

namespace firstframe {

// A part of the load as it ended: "plan" (open, lay out, probe), "allocate"
// (the arena), "pin" (the ring), "transfer" (read and copy, overlapped).
struct LoadPhase {
  absl::string_view name;
  int64_t start_ns = 0;  // CLOCK_MONOTONIC
  int64_t end_ns = 0;
};

struct LoadOptions {
  // Null: host memory. Else the arena is `device` memory of this runtime.
  cuda::Runtime* runtime = nullptr;
  int device = 0;

  PathPolicy policy = PathPolicy::kAuto;
  TransferOptions transfer;
  // Where the ring lies, and, unless transfer.cpus says otherwise, the threads
  // that fill it run. Unbound: by the device, on a machine with several memory
  // nodes.
  NumaPlace place;
  // Processes of this machine that load at the same time, and share its CPUs.
  int local_ranks = 1;
  // The ring never takes more than this, nor more than a quarter of what the
  // cgroup, the machine and RLIMIT_MEMLOCK leave.
  uint64_t max_ring_bytes = 192 << 20;

  // Asked every few milliseconds; true ends the load in Cancelled.
  std::function<bool()> is_cancelled;
  absl::Time deadline = absl::InfiniteFuture();
  // Called on the loading thread, every few milliseconds.
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> on_progress;
  // Called on the loading thread as each phase ends.
  std::function<void(const LoadPhase&)> on_phase;
};

// What a load did, beside the tensors.
struct LoadReport {
  TransferStats transfer;
  // Of the pages looked at, one in 2 MiB (SampleResidency).
  Residency residency_before;
  int64_t probe_ns = 0;   // finding that out
  int64_t choose_ns = 0;  // cutting pieces, choosing their paths
  uint64_t tensor_bytes = 0;
  uint64_t ring_bytes = 0;
  bool ring_is_pinned = false;
  // Everything that was not done the way it was meant, in words; empty on the
  // fast path.
  std::vector<std::string> degraded;
};

struct LoadedTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::byte* data = nullptr;  // in the arena, 256-byte aligned
  uint64_t size_bytes = 0;
};

// Owns the arena that its tensors point into. Movable.
struct LoadedCheckpoint {
  std::vector<LoadedTensor> tensors;  // by file, then by place in it
  HostArena host_arena;               // one of the two is empty
  cuda::DeviceBuffer device_arena;
  LoadReport report;
};

// Loads all of `source`. Codes: from errno (files), DataLoss (a file shorter
// than its header says), Aborted (a file changed meanwhile), ResourceExhausted
// (memory), Cancelled, DeadlineExceeded, Unavailable (device).
absl::StatusOr<LoadedCheckpoint> LoadCheckpoint(const LoadSource& source,
                                                const LoadOptions& options);

// Thread-compatible. Files stay open, and the ring pinned, for as long as it
// lives.
class CheckpointLoader {
 public:
  // Plans and opens; reports the phase "plan".
  static absl::StatusOr<CheckpointLoader> Create(const LoadSource& source,
                                                 const LoadOptions& options);

  const LoadPlan& plan() const { return plan_; }
  const OpenedSources& sources() const { return sources_; }
  const LoadOptions& options() const { return options_; }
  const StagingRing& ring() const { return ring_; }

  // Pins the ring that pieces on these paths need, when there is none that is
  // large enough; reports the phase "pin". Load() does it when it was not done.
  absl::Status PrepareRing(const PieceList& list);

  // Gives the loader a ring of an earlier one, and takes it back, so that load
  // after load pins memory once. `ring` must be pinned for the same runtime.
  void AdoptRing(StagingRing ring) { ring_ = std::move(ring); }
  StagingRing TakeRing() { return std::exchange(ring_, StagingRing()); }

  // Fills `ranges` of the arena at `arena` (plan().arena_bytes long), calling
  // `on_group` as TransferHooks does for each range by its index, and `poll`
  // every few milliseconds. Both may be empty. Reports the phase "transfer".
  absl::StatusOr<LoadReport> Load(
      std::byte* arena, absl::Span<const ArenaRange> ranges,
      const std::function<absl::Status(int, absl::Span<const cuda::Stream>)>&
          on_group = {},
      const std::function<absl::Status()>& poll = {});

  // The whole arena as one range.
  absl::StatusOr<LoadReport> LoadAll(std::byte* arena) {
    const ArenaRange all[] = {{0, plan_.arena_bytes}};
    return Load(arena, all);
  }

 private:
  CheckpointLoader(LoadPlan plan, OpenedSources sources, LoadOptions options)
      : plan_(std::move(plan)),
        sources_(std::move(sources)),
        options_(std::move(options)) {}

  LoadPlan plan_;
  OpenedSources sources_;
  LoadOptions options_;
  StagingRing ring_;
};

// The tensors of `plan` in an arena at `arena`.
std::vector<LoadedTensor> TensorsIn(const LoadPlan& plan, std::byte* arena);

}  // namespace firstframe

#endif  // LIB_LOAD_LOADER_H_
