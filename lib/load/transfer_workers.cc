#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/status_macros.h"
#include "lib/cuda/event.h"
#include "lib/load/read_queue.h"
#include "lib/load/transfer_state.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// A direct piece with more tensors than this is laid out in its slot and copied
// at once: one copy costs about as much as moving this many kilobytes.
constexpr uint32_t kMaxCopiesPerPiece = 4;

int64_t Now() { return MonotonicClock::Get().NowNs(); }

// Fills `parts` with where each segment of `piece` goes, `base` being the
// address of the arena's byte `arena_begin`.
void ListParts(const PieceList& list, const Piece& piece, std::byte* base,
               uint64_t arena_begin, std::vector<iovec>* parts) {
  parts->clear();
  for (const Segment& segment : list.SegmentsOf(piece)) {
    parts->push_back({base + (segment.arena_offset - arena_begin),
                      static_cast<size_t>(segment.size_bytes)});
  }
}

// The events of one thread's slots: whether a slot's copy is still on its way.
class SlotEvents {
 public:
  static absl::StatusOr<SlotEvents> Create(int num_slots,
                                           cuda::Runtime& runtime) {
    SlotEvents events;
    for (int i = 0; i < num_slots; ++i) {
      FF_ASSIGN_OR_RETURN(
          cuda::Event event,
          cuda::Event::Create(cuda::EventKind::kOrdering, runtime));
      events.events_.push_back(std::move(event));
    }
    return events;
  }

  absl::Status Record(int slot, const cuda::Stream& stream) {
    return events_[slot].Record(stream.handle());
  }
  absl::Status Wait(int slot, TransferState& state) {
    const int64_t start = Now();
    FF_ASSIGN_OR_RETURN(const bool is_free, events_[slot].IsComplete());
    if (is_free) return absl::OkStatus();
    FF_RETURN_IF_ERROR(events_[slot].Synchronize());
    state.copy_wait_ns.fetch_add(Now() - start, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsComplete(int slot) const {
    return events_[slot].IsComplete();
  }

 private:
  std::vector<cuda::Event> events_;
};

// Makes room for the arena's alignment gaps: moves the segments, which lie end
// to end from `from`, to their distances from `to`. Back to front, since every
// byte moves forward.
void SpreadInPlace(const PieceList& list, const Piece& piece, std::byte* from,
                   std::byte* to) {
  const absl::Span<const Segment> segments = list.SegmentsOf(piece);
  for (size_t i = segments.size(); i-- > 0;) {
    const Segment& segment = segments[i];
    std::memmove(to + (segment.arena_offset - piece.arena.begin),
                 from + (segment.file_offset - piece.file_begin),
                 segment.size_bytes);
  }
}

// One thread's direct reads: slots are free, being read, or being copied.
class DirectWorker {
 public:
  DirectWorker(PieceQueue& queue, const WorkerSlots& slots,
               TransferState& state)
      : queue_(queue), slots_(slots), state_(state), pieces_(slots.num_slots) {
    for (int i = 0; i < slots.num_slots; ++i) free_.push_back(i);
  }

  absl::Status Run(bool allow_io_uring) {
    FF_RETURN_IF_ERROR(Open(allow_io_uring));
    while (!state_.should_stop()) {
      state_.NoteRead(Now());
      FF_RETURN_IF_ERROR(StartReads());
      if (reads_->in_flight() == 0) break;
      const int64_t start = Now();
      FF_ASSIGN_OR_RETURN(const int slot, reads_->WaitOne());
      state_.read_busy_ns.fetch_add(Now() - start, std::memory_order_relaxed);
      FF_RETURN_IF_ERROR(HandOver(slot));
      state_.Finish(*pieces_[slot]);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Open(bool allow_io_uring) {
    if (state_.destination.to_device()) {
      FF_ASSIGN_OR_RETURN(
          events_,
          SlotEvents::Create(slots_.num_slots, *state_.destination.runtime));
    }
    if (allow_io_uring) {
      auto queue =
          MakeUringQueue(slots_.memory, slots_.slot_bytes, slots_.num_slots);
      if (queue.ok()) {
        reads_ = *std::move(queue);
        state_.used_uring = true;
        return absl::OkStatus();
      }
      state_.SetUringError(queue.status().message());
    }
    reads_ = MakePreadQueue(slots_.memory, slots_.slot_bytes, slots_.num_slots);
    state_.used_direct_pread = true;
    return absl::OkStatus();
  }

  // Starts a read in every free slot, waiting for a copy only when there is
  // nothing else to wait for.
  absl::Status StartReads() {
    while (!copying_.empty()) {
      if (free_.empty() && reads_->in_flight() == 0) {
        FF_RETURN_IF_ERROR(events_.Wait(copying_.front(), state_));
      } else {
        FF_ASSIGN_OR_RETURN(const bool is_done,
                            events_.IsComplete(copying_.front()));
        if (!is_done) break;
      }
      free_.push_back(copying_.front());
      copying_.pop_front();
    }
    while (!free_.empty()) {
      const Piece* piece = queue_.Take(state_.list);
      if (piece == nullptr) return absl::OkStatus();
      const int slot = free_.back();
      free_.pop_back();
      pieces_[slot] = piece;
      const DirectFile& direct = *state_.sources.files[piece->file].direct;
      const uint64_t block = direct.offset_alignment;
      const uint64_t begin = piece->file_begin / block * block;
      const uint64_t end = (piece->file_end + block - 1) / block * block;
      FF_RETURN_IF_ERROR(reads_->Start(slot, direct.file, begin, end - begin,
                                       piece->file_end - begin));
    }
    return absl::OkStatus();
  }

  // Passes on what slot `slot` holds: `skip` bytes of the block before, then
  // the piece as it lies in the file.
  absl::Status HandOver(int slot) {
    const Piece& piece = *pieces_[slot];
    const uint64_t block =
        state_.sources.files[piece.file].direct->offset_alignment;
    const uint64_t skip = piece.file_begin % block;
    std::byte* const memory = slots_.memory + slot * slots_.slot_bytes;
    std::byte* const arena = state_.destination.arena;
    if (!state_.destination.to_device()) {
      for (const Segment& segment : state_.list.SegmentsOf(piece)) {
        std::memcpy(arena + segment.arena_offset,
                    memory + skip + (segment.file_offset - piece.file_begin),
                    segment.size_bytes);
      }
      free_.push_back(slot);
      return absl::OkStatus();
    }
    const cuda::Stream& stream = state_.streams[slots_.stream];
    state_.NoteCopy(Now());
    if (piece.num_segments <= kMaxCopiesPerPiece) {
      for (const Segment& segment : state_.list.SegmentsOf(piece)) {
        FF_RETURN_IF_ERROR(stream.CopyAsync(
            arena + segment.arena_offset,
            memory + skip + (segment.file_offset - piece.file_begin),
            segment.size_bytes));
      }
    } else {
      std::byte* const image = memory + (skip + kTensorAlignment - 1) /
                                            kTensorAlignment * kTensorAlignment;
      SpreadInPlace(state_.list, piece, memory + skip, image);
      FF_RETURN_IF_ERROR(stream.CopyAsync(arena + piece.arena.begin, image,
                                          piece.arena.size_bytes()));
    }
    FF_RETURN_IF_ERROR(events_.Record(slot, stream));
    copying_.push_back(slot);
    return absl::OkStatus();
  }

  PieceQueue& queue_;
  const WorkerSlots slots_;
  TransferState& state_;
  std::unique_ptr<ReadQueue> reads_;
  SlotEvents events_;
  std::vector<const Piece*> pieces_;  // what each slot holds
  std::vector<int> free_;
  std::deque<int> copying_;
};

}  // namespace

absl::Status RunBufferedToHost(PieceQueue& queue, TransferState& state) {
  std::vector<iovec> parts;
  while (!state.should_stop()) {
    const Piece* piece = queue.Take(state.list);
    if (piece == nullptr) break;
    const int64_t start = Now();
    state.NoteRead(start);
    ListParts(state.list, *piece, state.destination.arena, 0, &parts);
    FF_RETURN_IF_ERROR(state.sources.files[piece->file].buffered.ReadScattered(
        piece->file_begin, absl::MakeSpan(parts)));
    state.read_busy_ns.fetch_add(Now() - start, std::memory_order_relaxed);
    state.Finish(*piece);
  }
  return absl::OkStatus();
}

absl::Status RunBufferedToDevice(PieceQueue& queue, BlockRing& ring,
                                 TransferState& state) {
  const Destination& destination = state.destination;
  FF_RETURN_IF_ERROR(destination.runtime->SetDevice(destination.device));
  std::vector<iovec> parts;
  while (!state.should_stop()) {
    size_t index;
    const Piece* piece = queue.Take(state.list, &index);
    if (piece == nullptr) break;
    const uint32_t b = ring.BlockOf(index);
    const Block& block = ring.block(b);
    FF_RETURN_IF_ERROR(ring.WaitForSlot(b, index == block.first_piece, state));
    if (state.should_stop()) break;
    const int64_t start = Now();
    state.NoteRead(start);
    ListParts(state.list, *piece, ring.SlotOf(b), block.arena.begin, &parts);
    FF_RETURN_IF_ERROR(state.sources.files[piece->file].buffered.ReadScattered(
        piece->file_begin, absl::MakeSpan(parts)));
    state.read_busy_ns.fetch_add(Now() - start, std::memory_order_relaxed);
    FF_RETURN_IF_ERROR(ring.FinishPiece(b, queue, state));
  }
  return absl::OkStatus();
}

absl::Status RunDirect(PieceQueue& queue, const WorkerSlots& slots,
                       bool allow_io_uring, TransferState& state) {
  if (state.destination.to_device()) {
    FF_RETURN_IF_ERROR(
        state.destination.runtime->SetDevice(state.destination.device));
  }
  return DirectWorker(queue, slots, state).Run(allow_io_uring);
}

}  // namespace firstframe
