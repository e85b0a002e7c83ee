// Moves the pieces of a plan from their files into an arena, in host or device
// memory, with as many threads and as many bytes in flight as that takes.
//
//   cached   N threads read into slots of a small pinned ring that stays in the
//            last-level cache (preadv lays tensors out aligned as it reads),
//            and enqueue one copy per slot on one of two streams.
//   direct   a few threads keep several O_DIRECT reads in flight each
//   (io_uring,
//            or one pread each where that is forbidden).
//   network  as cached, with more threads and larger reads in flight.
//
// Into host memory cached reads go straight to their place, without a ring.

#ifndef LIB_LOAD_TRANSFER_H_
#define LIB_LOAD_TRANSFER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/cuda/runtime.h"
#include "lib/cuda/stream.h"
#include "lib/load/plan.h"
#include "lib/load/sources.h"
#include "lib/load/staging.h"

namespace firstframe {

struct TransferOptions {
  // 0: by the CPUs that this process may use; see ResolveTransferOptions.
  int cached_threads = 0;
  uint64_t cached_read_bytes = 1 << 20;  // one read of one thread
  uint64_t cached_slot_bytes = 8 << 20;  // one copy
  // 0: 8, or fewer where several ranks share the last-level cache.
  int cached_slots = 0;
  int direct_threads = 4;
  uint64_t direct_slot_bytes = 4 << 20;
  int direct_slots_per_thread = 4;
  // A server answers late: many bytes must be on their way.
  int network_threads = 32;
  uint64_t network_read_bytes = 4 << 20;
  uint64_t network_slot_bytes = 8 << 20;
  int network_slots = 20;
  // One keeps an H200's copy engine busier than two: the same copies over two
  // streams take 10 to 15 % longer (docs/benchmarks.md).
  int copy_streams = 1;
  bool allow_io_uring = true;
  // Where the threads run; empty: anywhere.
  std::vector<int> cpus;
};

inline constexpr int kMaxAutoThreads = 16;
inline constexpr int kMaxAutoSlots = 8;
inline constexpr int kMinAutoSlots = 4;

// CPUs that this process may keep busy (lib/host/cpu_budget.h), and that are
// online.
struct CpuCount {
  int usable = 1;
  int online = 1;
};
CpuCount CountCpus();

// The options with every 0 replaced by what it means on this machine, which
// `local_ranks` processes share. Into host memory every CPU copies. Into a
// device a quarter of them is left to the threads that feed it (this one,
// NCCL's, the driver's): on 32 CPUs and two GPUs 12 readers a GPU beat 16. Two
// ranks' rings together take what one alone takes, so that they stay in the
// cache that the ranks share: a slot that is written again only after it was
// evicted costs more passes over memory. No rank has fewer than kMinAutoSlots,
// with which copies would wait for reads (docs/benchmarks.md).
TransferOptions ResolveTransferOptions(TransferOptions options, bool to_device,
                                       int local_ranks, CpuCount cpus);

// Bytes that RunTransfer needs in its ring for pieces on these paths.
uint64_t RingBytes(const TransferOptions& options, const PieceList& list,
                   bool to_device);

// Where the arena is.
struct Destination {
  std::byte* arena = nullptr;
  cuda::Runtime* runtime = nullptr;  // null: host memory
  int device = 0;
  bool to_device() const { return runtime != nullptr; }
};

// What a transfer tells its caller while it runs. All are called on the thread
// that called RunTransfer, and an error ends the transfer.
struct TransferHooks {
  // All pieces of `group` are in the arena (host), or their copies are enqueued
  // on `streams` (device). Groups come in order.
  std::function<absl::Status(int group, absl::Span<const cuda::Stream> streams)>
      on_group;
  // Every few milliseconds: cancellation, deadlines, the other ranks' fate,
  // progress.
  std::function<absl::Status(uint64_t bytes_done)> poll;
};

struct TransferStats {
  uint64_t bytes_by_path[3] = {};  // by ReadPath
  std::string direct_method;       // "io_uring", "pread", or empty: not used
  int threads = 0;
  int64_t wall_ns = 0;        // until the last byte was in the arena
  int64_t read_busy_ns = 0;   // in reads, the mean over the threads
  int64_t copy_wait_ns = 0;   // waiting for a slot's copy, likewise
  int64_t start_ns = 0;       // from the start to the first read
  int64_t first_copy_ns = 0;  // from the start to the first copy enqueued
  int64_t last_copy_ns = 0;   // from the start to the last
  std::vector<std::string> degraded;
};

// Runs the transfer to its end: the arena is whole and the device idle when it
// returns OK. `ring` may be empty for cached and network pieces into host
// memory. The first error of any thread or hook stops all and is returned; the
// arena's contents are then undefined. Thread-safe for distinct rings, arenas.
absl::StatusOr<TransferStats> RunTransfer(const PieceList& list, int num_groups,
                                          const OpenedSources& sources,
                                          const StagingRing& ring,
                                          const Destination& destination,
                                          const TransferOptions& options,
                                          const TransferHooks& hooks);

}  // namespace firstframe

#endif  // LIB_LOAD_TRANSFER_H_
