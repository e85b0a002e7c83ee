// The host memory that bytes pass through on their way to a device, and the
// arenas where they end up. All sizes are known before the first byte moves.

#ifndef LIB_LOAD_STAGING_H_
#define LIB_LOAD_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/runtime.h"
#include "lib/load/numa.h"

namespace firstframe {

// Anonymous memory in huge pages where the system grants them, zeroed, aligned
// to 2 MiB. Pages are given when first touched. Movable.
class HostArena {
 public:
  HostArena() = default;
  // ResourceExhausted when the address space or the limits do not allow it.
  static absl::StatusOr<HostArena> Allocate(size_t size_bytes);

  HostArena(HostArena&& other) noexcept { Swap(other); }
  HostArena& operator=(HostArena&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~HostArena();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }

  // Touches every page, with `threads` threads.
  void Populate(int threads) const;

 private:
  void Swap(HostArena& other);

  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t mapped_bytes_ = 0;
};

// The ring of slots between files and a device: populated in parallel, then
// pinned in one registration, once, and reused by load after load.
class StagingRing {
 public:
  StagingRing() = default;

  // On the memory node of `place` when that is bound.
  //
  // Takes `size_bytes`, or what the limits leave of it but at least
  // `least_bytes`, and pins it for `runtime`'s devices when `runtime` is not
  // null. A ring that cannot be pinned is still usable; notes() says so.
  // ResourceExhausted when not even `least_bytes` are there.
  static absl::StatusOr<StagingRing> Create(size_t size_bytes,
                                            size_t least_bytes,
                                            uint64_t budget_bytes, int threads,
                                            cuda::Runtime* runtime,
                                            const NumaPlace& place = {});

  std::byte* data() const { return arena_.data(); }
  size_t size_bytes() const { return size_bytes_; }
  bool is_pinned() const { return is_pinned_; }
  // Why it is smaller than asked, or not pinned; empty when all is well.
  const std::string& note() const { return note_; }
  int64_t allocate_ns() const { return allocate_ns_; }
  int64_t pin_ns() const { return pin_ns_; }

 private:
  HostArena arena_;
  cuda::HostRegistration registration_;  // ends before the arena does
  size_t size_bytes_ = 0;
  bool is_pinned_ = false;
  std::string note_;
  int64_t allocate_ns_ = 0;
  int64_t pin_ns_ = 0;
};

}  // namespace firstframe

#endif  // LIB_LOAD_STAGING_H_
