#include <sched.h>

#include <algorithm>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/status_macros.h"
#include "lib/load/transfer_state.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// Waits for another thread's store, which comes within microseconds, or within
// the time of one copy: spins first, then lets others run.
template <typename Condition>
void SpinUntil(const TransferState& state, Condition condition) {
  for (int turn = 0; !condition() && !state.should_stop(); ++turn) {
    if (turn > 200) ::sched_yield();
  }
}

}  // namespace

BlockRing::BlockRing(const PieceList& list, const PieceQueue& queue,
                     uint64_t slot_bytes)
    : slot_bytes_(slot_bytes) {
  block_of_.reserve(queue.pieces.size());
  for (size_t i = 0; i < queue.pieces.size(); ++i) {
    const Piece& piece = list.pieces[queue.pieces[i]];
    FF_CHECK(piece.arena.size_bytes() <= slot_bytes);
    // Neighbours in the list are neighbours in the arena: nothing but alignment
    // lies between them, so one copy over both harms no other bytes.
    const bool joins =
        !blocks_.empty() && queue.pieces[i] == queue.pieces[i - 1] + 1 &&
        piece.group == list.pieces[queue.pieces[i - 1]].group &&
        piece.arena.begin >= blocks_.back().arena.end &&
        piece.arena.begin - blocks_.back().arena.end < kTensorAlignment &&
        piece.arena.end - blocks_.back().arena.begin <= slot_bytes;
    if (!joins) {
      Block block;
      block.arena = piece.arena;
      block.first_piece = static_cast<uint32_t>(i);
      blocks_.push_back(block);
    }
    blocks_.back().arena.end = piece.arena.end;
    ++blocks_.back().num_pieces;
    block_of_.push_back(static_cast<uint32_t>(blocks_.size() - 1));
  }
  left_ = std::vector<std::atomic<uint32_t>>(blocks_.size());
  for (size_t b = 0; b < blocks_.size(); ++b) left_[b] = blocks_[b].num_pieces;
}

absl::Status BlockRing::Open(std::byte* memory, int num_slots,
                             cuda::Runtime& runtime) {
  FF_CHECK(num_slots > 0);
  memory_ = memory;
  slots_ = std::vector<Slot>(num_slots);
  for (int i = 0; i < num_slots; ++i) {
    slots_[i].free_for = i;
    FF_ASSIGN_OR_RETURN(
        cuda::Event event,
        cuda::Event::Create(cuda::EventKind::kOrdering, runtime));
    events_.push_back(std::move(event));
  }
  return absl::OkStatus();
}

absl::Status BlockRing::WaitForSlot(uint32_t b, bool is_first,
                                    TransferState& state) {
  const size_t s = b % slots_.size();
  Slot& slot = slots_[s];
  const auto is_free = [&] {
    return slot.free_for.load(std::memory_order_acquire) == b;
  };
  if (is_free()) return absl::OkStatus();
  const int64_t start = MonotonicClock::Get().NowNs();
  if (is_first) {
    const int64_t before =
        static_cast<int64_t>(b) - static_cast<int64_t>(slots_.size());
    SpinUntil(state, [&] {
      return slot.copied.load(std::memory_order_acquire) == before;
    });
    if (state.should_stop()) return absl::OkStatus();
    FF_RETURN_IF_ERROR(events_[s].Synchronize());
    slot.free_for.store(b, std::memory_order_release);
  } else {
    SpinUntil(state, is_free);
  }
  state.copy_wait_ns.fetch_add(MonotonicClock::Get().NowNs() - start,
                               std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status BlockRing::FinishPiece(uint32_t b, const PieceQueue& queue,
                                    TransferState& state) {
  if (left_[b].fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return absl::OkStatus();
  }
  const Block& block = blocks_[b];
  const size_t s = b % slots_.size();
  const cuda::Stream& stream = state.streams[b % state.streams.size()];
  state.NoteCopy(MonotonicClock::Get().NowNs());
  FF_RETURN_IF_ERROR(
      stream.CopyAsync(state.destination.arena + block.arena.begin, SlotOf(b),
                       block.arena.size_bytes()));
  FF_RETURN_IF_ERROR(events_[s].Record(stream.handle()));
  slots_[s].copied.store(b, std::memory_order_release);
  for (uint32_t i = 0; i < block.num_pieces; ++i) {
    state.Finish(state.list.pieces[queue.pieces[block.first_piece + i]]);
  }
  return absl::OkStatus();
}

}  // namespace firstframe
