#include "lib/load/staging.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/run_threads.h"
#include "lib/base/status_macros.h"
#include "lib/timing/clock.h"

namespace firstframe {
namespace {

constexpr size_t kHugePage = 2 << 20;

size_t RoundUp(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

absl::StatusOr<HostArena> HostArena::Allocate(size_t size_bytes) {
  HostArena arena;
  if (size_bytes == 0) return arena;
  // One huge page more, so that a whole number of them can be aligned; the
  // surplus is never touched, so it costs address space alone.
  const size_t mapped = RoundUp(size_bytes, kHugePage) + kHugePage;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", size_bytes, " bytes of host memory (errno ",
                     errno, ")"));
  }
  const uintptr_t begin = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = RoundUp(begin, kHugePage);
  if (aligned > begin) ::munmap(base, aligned - begin);
  arena.data_ = reinterpret_cast<std::byte*>(aligned);
  arena.size_bytes_ = size_bytes;
  arena.mapped_bytes_ = mapped - (aligned - begin);
  // Fewer page faults and TLB misses; a system that refuses only goes slower.
  (void)::madvise(arena.data_, arena.mapped_bytes_, MADV_HUGEPAGE);
  return arena;
}

HostArena::~HostArena() {
  if (data_ != nullptr) ::munmap(data_, mapped_bytes_);
}

void HostArena::Swap(HostArena& other) {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
}

void HostArena::Populate(int threads) const {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::atomic<size_t> next = 0;
  RunOnThreads(threads, [&](int) {
    while (true) {
      const size_t at = next.fetch_add(kHugePage);
      if (at >= size_bytes_) return;
      const size_t end = std::min(at + kHugePage, size_bytes_);
      for (size_t i = at; i < end; i += page) {
        // A write that keeps what is there: others may already be filling it.
        std::atomic_ref<unsigned char>(
            *reinterpret_cast<unsigned char*>(data_ + i))
            .fetch_or(0, std::memory_order_relaxed);
      }
    }
  });
}

absl::StatusOr<StagingRing> StagingRing::Create(
    size_t size_bytes, size_t least_bytes, uint64_t budget_bytes, int threads,
    cuda::Runtime* runtime, const NumaPlace& place) {
  const Clock& clock = MonotonicClock::Get();
  StagingRing ring;
  const int64_t start = clock.NowNs();
  size_t size = size_bytes;
  if (size > budget_bytes) {
    size = std::max<size_t>(least_bytes, budget_bytes);
    ring.note_ = absl::StrCat("staging ring of ", size, " bytes instead of ",
                              size_bytes, ": memory limit");
  }
  FF_ASSIGN_OR_RETURN(ring.arena_, HostArena::Allocate(size));
  ring.size_bytes_ = size;
  if (place.is_bound()) {
    if (const absl::Status status = PreferNode(ring.data(), size, place.node);
        !status.ok()) {
      absl::StrAppend(
          &ring.note_, ring.note_.empty() ? "" : "; ",
          "staging ring may lie far from the device: ", status.message());
    }
  }
  ring.arena_.Populate(threads);
  const int64_t populated = clock.NowNs();
  ring.allocate_ns_ = populated - start;
  if (runtime == nullptr) return ring;
  absl::StatusOr<cuda::HostRegistration> registration =
      cuda::HostRegistration::Register(ring.data(), size, /*read_only=*/false,
                                       *runtime);
  if (registration.ok()) {
    ring.registration_ = *std::move(registration);
    ring.is_pinned_ = true;
  } else {
    absl::StrAppend(&ring.note_, ring.note_.empty() ? "" : "; ",
                    "staging ring not pinned, copies are slow: ",
                    registration.status().message());
  }
  ring.pin_ns_ = clock.NowNs() - populated;
  return ring;
}

}  // namespace firstframe
