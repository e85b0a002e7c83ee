// Host memory of exactly the size that is needed, pinned as far as the budget
// and the driver allow.
//
// PyTorch's pinned allocator rounds to a power of two and asks the driver to
// allocate; here the pages are anonymous huge pages, populated by several
// threads and registered afterwards, which costs a fifth.

#ifndef LIB_OFFLOAD_PINNED_ARENA_H_
#define LIB_OFFLOAD_PINNED_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/load/memory_budget.h"
#include "lib/load/staging.h"

namespace firstframe {

struct PinOptions {
  bool pin = true;
  // Never pin more than this, nor more than ReadMemoryBudget() said before the
  // memory was taken.
  uint64_t budget_bytes = std::numeric_limits<uint64_t>::max();
  std::string budget_source = "as asked";  // for messages
  // One registration of 512 GiB fails on driver 580 (LMCache issue 5177).
  uint64_t max_piece_bytes = uint64_t{64} << 30;
  int threads = 4;  // that populate
};

// Returns `options` with what `budget` allows, where that is less.
PinOptions WithinBudget(PinOptions options, const MemoryBudget& budget);

// Registers `size_bytes` at `data` in pieces, as many as options.budget_bytes
// and the driver allow.
class PinnedRegion {
 public:
  PinnedRegion() = default;

  // `options` are WithinBudget() already. Never fails: note() says what is not
  // pinned and why. `read_only` for a file mapping without write permission.
  static PinnedRegion Pin(std::byte* data, uint64_t size_bytes, bool read_only,
                          const PinOptions& options, cuda::Runtime& runtime);

  uint64_t pinned_bytes() const { return pinned_bytes_; }
  const std::string& note() const { return note_; }
  // Addresses that one copy must not span: the inner ends of the pieces.
  const std::vector<const std::byte*>& cuts() const { return cuts_; }

 private:
  std::vector<cuda::HostRegistration> pieces_;
  std::vector<const std::byte*> cuts_;
  uint64_t pinned_bytes_ = 0;
  std::string note_;
};

// Movable, thread-compatible. Unpinned before it is unmapped; no copy may be in
// flight then.
class PinnedArena {
 public:
  PinnedArena() = default;

  // Allocates and populates; pins nothing yet, so that whoever fills it does so
  // at full speed and can still fail cheaply. ResourceExhausted when the cgroup
  // of `budget` has less left than that: touching more would end the process.
  static absl::StatusOr<PinnedArena> Create(
      uint64_t size_bytes, int threads,
      const MemoryBudget& budget = ReadMemoryBudget());

  // Not more than the budget given to Create, which did not yet count this
  // arena's own pages as used.
  void Pin(const PinOptions& options, cuda::Runtime& runtime);

  std::byte* data() const { return arena_.data(); }
  uint64_t size_bytes() const { return arena_.size_bytes(); }
  const PinnedRegion& region() const { return region_; }
  int64_t populate_ns() const { return populate_ns_; }
  int64_t pin_ns() const { return pin_ns_; }

 private:
  HostArena arena_;
  PinnedRegion region_;  // ends before the arena does
  MemoryBudget budget_;  // before the arena was populated
  int64_t populate_ns_ = 0;
  int64_t pin_ns_ = 0;
};

}  // namespace firstframe

#endif  // LIB_OFFLOAD_PINNED_ARENA_H_
