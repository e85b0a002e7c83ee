// What the threads of one transfer share. Internal to transfer.cc and its
// workers.

#ifndef LIB_LOAD_TRANSFER_STATE_H_
#define LIB_LOAD_TRANSFER_STATE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "lib/cuda/stream.h"
#include "lib/load/plan.h"
#include "lib/load/sources.h"
#include "lib/load/transfer.h"

namespace firstframe {

// Thread-safe.
class TransferState {
 public:
  TransferState(const PieceList& list, int num_groups,
                const OpenedSources& sources, const Destination& destination)
      : list(list),
        sources(sources),
        destination(destination),
        remaining_(num_groups) {
    for (const Piece& piece : list.pieces) {
      remaining_[piece.group].fetch_add(1, std::memory_order_relaxed);
    }
  }

  const PieceList& list;
  const OpenedSources& sources;
  const Destination& destination;
  std::vector<cuda::Stream> streams;

  bool should_stop() const { return stop_.load(std::memory_order_relaxed); }

  // Keeps the first error and stops all threads.
  void Fail(const absl::Status& status) {
    const absl::MutexLock lock(&mutex_);
    if (status_.ok()) status_ = status;
    stop_.store(true);
    changed_.SignalAll();
  }

  // Counts a piece as handed over.
  void Finish(const Piece& piece) {
    bytes_done_.fetch_add(piece.file_end - piece.file_begin,
                          std::memory_order_relaxed);
    if (remaining_[piece.group].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      const absl::MutexLock lock(&mutex_);
      changed_.SignalAll();
    }
  }

  bool IsGroupDone(int group) const {
    return remaining_[group].load(std::memory_order_acquire) == 0;
  }

  // Waits until `group` is done, something failed, or `most` has passed.
  void WaitForGroup(int group, absl::Duration most) {
    const absl::MutexLock lock(&mutex_);
    const absl::Time deadline = absl::Now() + most;
    while (!stop_.load() && !IsGroupDone(group)) {
      if (changed_.WaitWithDeadline(&mutex_, deadline)) return;
    }
  }

  uint64_t bytes_done() const {
    return bytes_done_.load(std::memory_order_relaxed);
  }
  absl::Status status() {
    const absl::MutexLock lock(&mutex_);
    return status_;
  }
  void NoteCopy(int64_t now_ns) {
    int64_t unset = 0;
    first_copy_at_ns.compare_exchange_strong(unset, now_ns);
  }

  std::atomic<int64_t> read_busy_ns = 0;
  std::atomic<int64_t> copy_wait_ns = 0;
  std::atomic<int64_t> first_copy_at_ns = 0;
  std::atomic<bool> used_uring = false;
  std::atomic<bool> used_direct_pread = false;
  std::string uring_error;  // guarded by the mutex of SetUringError
  void SetUringError(absl::string_view error) {
    const absl::MutexLock lock(&mutex_);
    uring_error = std::string(error);
  }

 private:
  std::vector<std::atomic<int64_t>> remaining_;
  std::atomic<uint64_t> bytes_done_ = 0;
  std::atomic<bool> stop_ = false;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  absl::Status status_;
};

// Pieces of one path, taken in order by that path's threads.
struct PieceQueue {
  std::vector<uint32_t> pieces;  // indices into PieceList::pieces
  std::atomic<size_t> next = 0;

  // Returns the next piece, or null when all are taken.
  const Piece* Take(const PieceList& list) {
    const size_t i = next.fetch_add(1, std::memory_order_relaxed);
    return i < pieces.size() ? &list.pieces[pieces[i]] : nullptr;
  }
};

// One thread's part of the ring and the stream that it copies on.
struct WorkerSlots {
  std::byte* memory = nullptr;
  uint64_t slot_bytes = 0;
  int num_slots = 0;
  int stream = 0;
};

// Each runs on its own thread until its queue is empty or the transfer stops;
// the result is the thread's own error.
absl::Status RunBufferedToHost(PieceQueue& queue, TransferState& state);
absl::Status RunBufferedToDevice(PieceQueue& queue, const WorkerSlots& slots,
                                 TransferState& state);
absl::Status RunDirect(PieceQueue& queue, const WorkerSlots& slots,
                       bool allow_io_uring, TransferState& state);

}  // namespace firstframe

#endif  // LIB_LOAD_TRANSFER_STATE_H_
