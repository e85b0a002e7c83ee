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
#include "lib/cuda/event.h"
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
  void NoteRead(int64_t now_ns) {
    int64_t unset = 0;
    first_read_at_ns.compare_exchange_strong(unset, now_ns);
  }
  void NoteCopy(int64_t now_ns) {
    int64_t unset = 0;
    first_copy_at_ns.compare_exchange_strong(unset, now_ns);
    last_copy_at_ns.store(now_ns, std::memory_order_relaxed);
  }

  std::atomic<int64_t> read_busy_ns = 0;
  std::atomic<int64_t> copy_wait_ns = 0;
  std::atomic<int64_t> first_read_at_ns = 0;
  std::atomic<int64_t> first_copy_at_ns = 0;
  std::atomic<int64_t> last_copy_at_ns = 0;
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

  // Returns the next piece, or null when all are taken; its index here goes to
  // `*index` when that is not null.
  const Piece* Take(const PieceList& list, size_t* index = nullptr) {
    const size_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (index != nullptr) *index = i;
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

// Pieces that are neighbours in the arena, filled into one slot by any threads
// and copied at once.
struct Block {
  ArenaRange arena;
  uint32_t first_piece = 0;  // into PieceQueue::pieces
  uint32_t num_pieces = 0;
};

// The blocks of one path and the ring that they go through in turn: block b
// uses slot b modulo the number of slots, after the copy of the block before it
// there.
class BlockRing {
 public:
  // Groups the pieces of `queue`, which are in the order of the arena, into
  // blocks of at most `slot_bytes`, none over two groups or over pieces of
  // other paths.
  BlockRing(const PieceList& list, const PieceQueue& queue,
            uint64_t slot_bytes);

  // Gives the ring its memory and events. Call before any thread starts.
  absl::Status Open(std::byte* memory, int num_slots, cuda::Runtime& runtime);

  uint32_t BlockOf(size_t piece) const { return block_of_[piece]; }
  const Block& block(uint32_t b) const { return blocks_[b]; }
  std::byte* SlotOf(uint32_t b) const {
    return memory_ + b % slots_.size() * slot_bytes_;
  }

  // Waits until the slot of block `b` may be written. The thread that has the
  // block's first piece waits for the copy before it; the others for that
  // thread.
  absl::Status WaitForSlot(uint32_t b, bool is_first, TransferState& state);

  // Counts one piece of block `b` as read, and after the last enqueues the
  // copy.
  absl::Status FinishPiece(uint32_t b, const PieceQueue& queue,
                           TransferState& state);

 private:
  struct Slot {
    std::atomic<int64_t> free_for = 0;  // the block that may write now
    std::atomic<int64_t> copied = -1;   // the block whose copy is enqueued
  };

  const uint64_t slot_bytes_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;  // by index into the queue
  std::vector<std::atomic<uint32_t>>
      left_;  // pieces of each block not yet read
  std::byte* memory_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<cuda::Event> events_;
};

// Each runs on its own thread until its queue is empty or the transfer stops;
// the result is the thread's own error.
absl::Status RunBufferedToHost(PieceQueue& queue, TransferState& state);
absl::Status RunBufferedToDevice(PieceQueue& queue, BlockRing& ring,
                                 TransferState& state);
absl::Status RunDirect(PieceQueue& queue, const WorkerSlots& slots,
                       bool allow_io_uring, TransferState& state);

}  // namespace firstframe

#endif  // LIB_LOAD_TRANSFER_STATE_H_
