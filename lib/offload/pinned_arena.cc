#include "lib/offload/pinned_arena.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/status_macros.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

// Pieces end at huge pages: registering a page twice is an error.
constexpr uint64_t kPieceStep = 2 << 20;

}  // namespace

PinOptions WithinBudget(PinOptions options, const MemoryBudget& budget) {
  if (budget.PinnableBytes() < options.budget_bytes) {
    options.budget_bytes = budget.PinnableBytes();
    options.budget_source = std::string(budget.PinnableBound());
  }
  return options;
}

PinnedRegion PinnedRegion::Pin(std::byte* data, uint64_t size_bytes,
                               bool read_only, const PinOptions& options,
                               cuda::Runtime& runtime) {
  PinnedRegion region;
  if (size_bytes == 0) return region;
  if (!options.pin) {
    region.note_ = "not pinned: not asked for";
    return region;
  }
  const uint64_t budget = options.budget_bytes;
  uint64_t end = size_bytes;
  if (budget < size_bytes) {
    end = budget / kPieceStep * kPieceStep;
    region.note_ = absl::StrCat("pinned ", end, " of ", size_bytes,
                                " bytes: the budget is ", budget, " (",
                                options.budget_source, ")");
  }
  const uint64_t piece_bytes =
      std::max(kPieceStep, options.max_piece_bytes / kPieceStep * kPieceStep);
  for (uint64_t at = 0; at < end; at += piece_bytes) {
    const uint64_t size = std::min(piece_bytes, end - at);
    absl::StatusOr<cuda::HostRegistration> piece =
        cuda::HostRegistration::Register(data + at, size, read_only, runtime);
    if (!piece.ok()) {
      region.note_ = absl::StrCat("pinned ", at, " of ", size_bytes,
                                  " bytes: ", piece.status().message());
      break;
    }
    region.pieces_.push_back(*std::move(piece));
    region.pinned_bytes_ += size;
    if (at + size < size_bytes) region.cuts_.push_back(data + at + size);
  }
  return region;
}

absl::StatusOr<PinnedArena> PinnedArena::Create(uint64_t size_bytes,
                                                int threads,
                                                const MemoryBudget& budget) {
  FF_RETURN_IF_ERROR(budget.CheckRoom(size_bytes, "the host copy"));
  const Clock& clock = MonotonicClock::Get();
  const int64_t start = clock.NowNs();
  PinnedArena arena;
  arena.budget_ = budget;
  FF_ASSIGN_OR_RETURN(arena.arena_, HostArena::Allocate(size_bytes));
  arena.arena_.Populate(threads);
  arena.populate_ns_ = clock.NowNs() - start;
  return arena;
}

void PinnedArena::Pin(const PinOptions& options, cuda::Runtime& runtime) {
  const Clock& clock = MonotonicClock::Get();
  const int64_t start = clock.NowNs();
  region_ = PinnedRegion();  // what was pinned before must go first
  region_ = PinnedRegion::Pin(data(), size_bytes(), /*read_only=*/false,
                              WithinBudget(options, budget_), runtime);
  pin_ns_ = clock.NowNs() - start;
}

}  // namespace firstframe
