#include "lib/load/transfer.h"

#include <sched.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/load/transfer_state.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);

int UsableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1u, std::thread::hardware_concurrency());
}

// The pieces of each path, and how many threads each path gets.
struct Paths {
  PieceQueue queues[3];
  int threads[3] = {};
};

int ThreadsFor(const TransferOptions& options, ReadPath path) {
  switch (path) {
    case ReadPath::kCached:
      return options.cached_threads;
    case ReadPath::kDirect:
      return options.direct_threads;
    case ReadPath::kNetwork:
      return options.network_threads;
  }
  return 1;
}

void SortPieces(const PieceList& list, const TransferOptions& options,
                Paths* paths) {
  for (size_t i = 0; i < list.pieces.size(); ++i) {
    paths->queues[static_cast<int>(list.pieces[i].path)].pieces.push_back(
        static_cast<uint32_t>(i));
  }
  for (int p = 0; p < 3; ++p) {
    paths->threads[p] = static_cast<int>(
        std::min<size_t>(ThreadsFor(options, static_cast<ReadPath>(p)),
                         paths->queues[p].pieces.size()));
  }
}

// The slots that one thread of `path` uses; none where no ring is needed.
WorkerSlots SlotsFor(const TransferOptions& options, ReadPath path,
                     bool to_device) {
  WorkerSlots slots;
  if (path == ReadPath::kDirect) {
    slots.slot_bytes = options.direct_slot_bytes;
    slots.num_slots = options.direct_slots_per_thread;
  } else if (to_device) {
    slots.slot_bytes = options.cached_slot_bytes;
    slots.num_slots = options.cached_slots_per_thread;
  }
  return slots;
}

// A ring that came out smaller is shared by fewer threads.
absl::Status FitToRing(const TransferOptions& options, bool to_device,
                       uint64_t ring_bytes, Paths* paths) {
  const auto needed = [&] {
    uint64_t bytes = 0;
    for (int p = 0; p < 3; ++p) {
      const WorkerSlots slots =
          SlotsFor(options, static_cast<ReadPath>(p), to_device);
      bytes += slots.slot_bytes * slots.num_slots * paths->threads[p];
    }
    return bytes;
  };
  while (needed() > ring_bytes) {
    int* most = std::max_element(paths->threads, paths->threads + 3);
    if (*most <= 1) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the staging ring has ", ring_bytes,
                       " bytes, expected at least ", needed()));
    }
    --*most;
  }
  return absl::OkStatus();
}

void StartThreads(const TransferOptions& options, std::byte* memory,
                  Paths& paths, TransferState& state,
                  std::vector<std::thread>* threads) {
  const bool to_device = state.destination.to_device();
  for (int p = 0; p < 3; ++p) {
    const ReadPath path = static_cast<ReadPath>(p);
    for (int t = 0; t < paths.threads[p]; ++t) {
      WorkerSlots slots = SlotsFor(options, path, to_device);
      slots.memory = memory;
      memory += slots.slot_bytes * slots.num_slots;
      if (to_device) {
        slots.stream = static_cast<int>(threads->size() % state.streams.size());
      }
      PieceQueue& queue = paths.queues[p];
      threads->emplace_back([=, &queue, &state, &options] {
        absl::Status status;
        if (path == ReadPath::kDirect) {
          status = RunDirect(queue, slots, options.allow_io_uring, state);
        } else if (to_device) {
          status = RunBufferedToDevice(queue, slots, state);
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

TransferOptions ResolveTransferOptions(TransferOptions options) {
  if (options.cached_threads <= 0) {
    options.cached_threads = std::clamp(UsableCpus(), 1, kMaxAutoThreads);
  }
  return options;
}

uint64_t RingBytes(const TransferOptions& options, const PieceList& list,
                   bool to_device) {
  Paths paths;
  SortPieces(list, options, &paths);
  uint64_t bytes = 0;
  for (int p = 0; p < 3; ++p) {
    const WorkerSlots slots =
        SlotsFor(options, static_cast<ReadPath>(p), to_device);
    bytes += slots.slot_bytes * slots.num_slots * paths.threads[p];
  }
  return bytes;
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
  SortPieces(list, options, &paths);
  FF_RETURN_IF_ERROR(
      FitToRing(options, destination.to_device(), ring.size_bytes(), &paths));
  TransferState state(list, num_groups, sources, destination);
  if (destination.to_device()) {
    FF_RETURN_IF_ERROR(destination.runtime->SetDevice(destination.device));
    for (int i = 0; i < std::max(1, options.copy_streams); ++i) {
      FF_ASSIGN_OR_RETURN(cuda::Stream stream,
                          cuda::Stream::Create(0, *destination.runtime));
      state.streams.push_back(std::move(stream));
    }
  }
  std::vector<std::thread> threads;
  StartThreads(options, ring.data(), paths, state, &threads);
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
  if (const int64_t at = state.first_copy_at_ns) {
    stats.first_copy_ns = at - start;
  }
  FillStats(options, list, state, &stats);
  return stats;
}

}  // namespace firstframe
