#include "lib/load/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/host/cpu_budget.h"
#include "lib/load/numa.h"
#include "lib/load/transfer_state.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);

// What one path gets of the machine.
struct PathShape {
  int threads = 0;
  uint64_t slot_bytes = 0;
  int slots = 0;  // direct: of each thread; else of all together
  bool is_direct = false;

  uint64_t ring_bytes() const {
    return slot_bytes * slots * (is_direct ? threads : 1);
  }
  // Gives up a part of the ring, if it can.
  bool Shrink() {
    int& what = is_direct ? threads : slots;
    if (what <= (is_direct ? 1 : 2)) return false;
    --what;
    return true;
  }
};

// The pieces of each path, by ReadPath.
struct Paths {
  PieceQueue queues[3];
  PathShape shapes[3];

  uint64_t ring_bytes() const {
    uint64_t bytes = 0;
    for (const PathShape& shape : shapes) bytes += shape.ring_bytes();
    return bytes;
  }
};

PathShape ShapeOf(const TransferOptions& options, ReadPath path,
                  bool to_device) {
  PathShape shape;
  switch (path) {
    case ReadPath::kCached:
      shape = {options.cached_threads, options.cached_slot_bytes,
               options.cached_slots, false};
      break;
    case ReadPath::kNetwork:
      shape = {options.network_threads, options.network_slot_bytes,
               options.network_slots, false};
      break;
    case ReadPath::kDirect:
      return {options.direct_threads, options.direct_slot_bytes,
              options.direct_slots_per_thread, true};
  }
  if (!to_device) shape.slots = 0;  // reads go straight to their place
  return shape;
}

void SortPieces(const PieceList& list, const TransferOptions& options,
                bool to_device, Paths* paths) {
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    paths->queues[static_cast<int>(list.pieces[i].path)].pieces.push_back(
        static_cast<uint32_t>(i));
  }
  for (int p = 0; p < 3; ++p) {
    const size_t pieces = paths->queues[p].pieces.size();
    if (pieces == 0) continue;
    PathShape& shape = paths->shapes[p];
    shape = ShapeOf(options, static_cast<ReadPath>(p), to_device);
    shape.threads = static_cast<int>(std::min<size_t>(shape.threads, pieces));
  }
}

// Fits the paths to a ring that came out smaller.
absl::Status FitToRing(uint64_t ring_bytes, Paths* paths) {
  while (paths->ring_bytes() > ring_bytes) {
    PathShape* const most =
        std::max_element(paths->shapes, paths->shapes + 3,
                         [](const PathShape& a, const PathShape& b) {
                           return a.ring_bytes() < b.ring_bytes();
                         });
    if (!most->Shrink()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the staging ring has ", ring_bytes,
                       " bytes, expected at least ", paths->ring_bytes()));
    }
  }
  return absl::OkStatus();
}

// Hands out the ring's memory, and makes the rings of blocks that need it.
absl::Status OpenRings(std::byte* memory, Paths& paths, TransferState& state,
                       std::unique_ptr<BlockRing> (&rings)[3],
                       std::byte*(&direct_memory)) {
  for (int p = 0; p < 3; ++p) {
    const PathShape& shape = paths.shapes[p];
    if (shape.threads == 0) continue;
    if (shape.is_direct) {
      direct_memory = memory;
    } else if (state.destination.to_device()) {
      rings[p] = std::make_unique<BlockRing>(state.list, paths.queues[p],
                                             shape.slot_bytes);
      FF_RETURN_IF_ERROR(
          rings[p]->Open(memory, shape.slots, *state.destination.runtime));
    }
    memory += shape.ring_bytes();
  }
  return absl::OkStatus();
}

void StartThreads(const TransferOptions& options, std::byte* direct_memory,
                  Paths& paths, std::unique_ptr<BlockRing> (&rings)[3],
                  TransferState& state, std::vector<std::thread>* threads) {
  for (int p = 0; p < 3; ++p) {
    const PathShape& shape = paths.shapes[p];
    for (int t = 0; t < shape.threads; ++t) {
      WorkerSlots slots;
      if (shape.is_direct) {
        slots.slot_bytes = shape.slot_bytes;
        slots.num_slots = shape.slots;
        slots.memory = direct_memory + shape.slot_bytes * shape.slots * t;
        if (!state.streams.empty()) {
          slots.stream = t % static_cast<int>(state.streams.size());
        }
      }
      PieceQueue& queue = paths.queues[p];
      BlockRing* const ring = rings[p].get();
      threads->emplace_back(
          [is_direct = shape.is_direct, slots, ring, &queue, &state, &options] {
            RunThreadOn(options.cpus);
            absl::Status status;
            if (is_direct) {
              status = RunDirect(queue, slots, options.allow_io_uring, state);
            } else if (ring != nullptr) {
              status = RunBufferedToDevice(queue, *ring, state);
            } else {
              status = RunBufferedToHost(queue, state);
            }
            if (!status.ok()) state.Fail(status);
          });
    }
  }
}

// Follows the threads from the caller's thread until all groups are through.
absl::Status Follow(int num_groups, const TransferHooks& hooks,
                    TransferState& state) {
  for (int group = 0; group < num_groups; ++group) {
    while (!state.IsGroupDone(group)) {
      state.WaitForGroup(group, kPollInterval);
      FF_RETURN_IF_ERROR(state.status());
      if (hooks.poll) FF_RETURN_IF_ERROR(hooks.poll(state.bytes_done()));
    }
    if (hooks.on_group) {
      FF_RETURN_IF_ERROR(hooks.on_group(group, state.streams));
    }
  }
  return absl::OkStatus();
}

void FillStats(const TransferOptions& options, const PieceList& list,
               TransferState& state, TransferStats* stats) {
  for (const Piece& piece : list.pieces) {
    stats->bytes_by_path[static_cast<int>(piece.path)] +=
        piece.file_end - piece.file_begin;
  }
  if (state.used_uring) stats->direct_method = "io_uring";
  if (state.used_direct_pread) stats->direct_method = "pread";
  if (state.used_direct_pread && options.allow_io_uring) {
    stats->degraded.push_back(
        absl::StrCat("direct reads by pread threads: ", state.uring_error));
  }
  const int64_t threads = std::max(stats->threads, 1);
  stats->read_busy_ns = state.read_busy_ns / threads;
  stats->copy_wait_ns = state.copy_wait_ns / threads;
}

}  // namespace

CpuCount CountCpus() {
  CpuCount count;
  count.online = std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  count.usable = CpuBudget();
  return count;
}

TransferOptions ResolveTransferOptions(TransferOptions options, bool to_device,
                                       int local_ranks, CpuCount cpus) {
  if (options.cached_threads <= 0) {
    const int share = cpus.usable / std::max(1, local_ranks);
    options.cached_threads =
        std::clamp(to_device ? share * 3 / 4 : share, 1, kMaxAutoThreads);
  }
  if (options.cached_slots <= 0) {
    options.cached_slots = std::clamp(kMaxAutoSlots / std::max(1, local_ranks),
                                      kMinAutoSlots, kMaxAutoSlots);
  }
  return options;
}

uint64_t RingBytes(const TransferOptions& options, const PieceList& list,
                   bool to_device) {
  Paths paths;
  SortPieces(list, options, to_device, &paths);
  return paths.ring_bytes();
}

absl::StatusOr<TransferStats> RunTransfer(const PieceList& list, int num_groups,
                                          const OpenedSources& sources,
                                          const StagingRing& ring,
                                          const Destination& destination,
                                          const TransferOptions& options,
                                          const TransferHooks& hooks) {
  const int64_t start = MonotonicClock::Get().NowNs();
  TransferStats stats;
  Paths paths;
  SortPieces(list, options, destination.to_device(), &paths);
  FF_RETURN_IF_ERROR(FitToRing(ring.size_bytes(), &paths));
  TransferState state(list, num_groups, sources, destination);
  if (destination.to_device()) {
    FF_RETURN_IF_ERROR(destination.runtime->SetDevice(destination.device));
    for (int i = 0; i < std::max(1, options.copy_streams); ++i) {
      FF_ASSIGN_OR_RETURN(cuda::Stream stream,
                          cuda::Stream::Create(0, *destination.runtime));
      state.streams.push_back(std::move(stream));
    }
  }
  std::unique_ptr<BlockRing> rings[3];
  std::byte* direct_memory = nullptr;
  FF_RETURN_IF_ERROR(
      OpenRings(ring.data(), paths, state, rings, direct_memory));
  std::vector<std::thread> threads;
  StartThreads(options, direct_memory, paths, rings, state, &threads);
  stats.threads = static_cast<int>(threads.size());
  absl::Status status = Follow(num_groups, hooks, state);
  if (!status.ok()) state.Fail(status);
  for (std::thread& thread : threads) thread.join();
  // Also after an error: copies that are on their way read the ring and write
  // the arena, which the caller may free.
  for (const cuda::Stream& stream : state.streams) {
    const absl::Status synchronized = stream.Synchronize();
    if (status.ok()) status = synchronized;
  }
  if (status.ok()) status = state.status();
  FF_RETURN_IF_ERROR(status);
  stats.wall_ns = MonotonicClock::Get().NowNs() - start;
  if (const int64_t at = state.first_read_at_ns) stats.start_ns = at - start;
  if (const int64_t at = state.first_copy_at_ns) {
    stats.first_copy_ns = at - start;
    stats.last_copy_ns = state.last_copy_at_ns - start;
  }
  FillStats(options, list, state, &stats);
  return stats;
}

}  // namespace firstframe
