// The phases of one thread, appended by that thread and readable by any other
// while it runs. Internal to lib/phase: use phase.h.
//
// One writer, no lock: entries live in chunks that never move, and what a
// reader may see is published by a release store (the entry count on open, the
// end time on close). So a watcher thread can report on a run that hangs or is
// interrupted.

#ifndef LIB_PHASE_PHASE_LOG_H_
#define LIB_PHASE_PHASE_LOG_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/base/check.h"
#include "lib/phase/phase_record.h"
#include "lib/timing/clock.h"

namespace firstframe::internal {

inline constexpr int64_t kPhaseOpen = std::numeric_limits<int64_t>::min();
inline constexpr int32_t kNoPhase = -1;

// What few phases have.
struct PhaseDetails {
  PhaseStatus status = PhaseStatus::kOk;
  std::string error;
  std::vector<PhaseAttribute> attributes;
};

struct PhaseEntry {
  const char* name = nullptr;
  uint32_t name_size = 0;
  int32_t parent = kNoPhase;  // in the same log
  int64_t start_ns = 0;
  // To be read only when end_ns is not kPhaseOpen.
  std::unique_ptr<PhaseDetails> details;
  std::atomic<int64_t> end_ns = kPhaseOpen;
};

class PhaseLog {
 public:
  // `clock` and `synchronize` must outlive the log. `*synchronize`, when it is
  // set, is called before each reading of the clock.
  PhaseLog(const Clock& clock, const std::function<void()>& synchronize)
      : clock_(clock), synchronize_(synchronize ? &synchronize : nullptr) {}
  ~PhaseLog();
  PhaseLog(const PhaseLog&) = delete;
  PhaseLog& operator=(const PhaseLog&) = delete;

  // Writer's side, one thread. Open returns the entry's index; phases close in
  // the reverse order of opening.
  int32_t Open(absl::string_view name) {
    const int32_t index = size_.load(std::memory_order_relaxed);
    if (next_ == chunk_end_) AddChunk();
    PhaseEntry& entry = *new (next_++) PhaseEntry;
    entry.name = KeepName(name);
    entry.name_size = static_cast<uint32_t>(name.size());
    entry.parent = current_;
    current_ = index;
    if (synchronize_ != nullptr) (*synchronize_)();
    entry.start_ns = clock_.NowNs();
    size_.store(index + 1, std::memory_order_release);
    return index;
  }

  void Close(int32_t index) {
    if (synchronize_ != nullptr) (*synchronize_)();
    const int64_t now_ns = clock_.NowNs();
    FF_CHECK(index == current_);
    PhaseEntry& entry = At(index);
    current_ = entry.parent;
    entry.end_ns.store(now_ns, std::memory_order_release);
  }

  // Of an open phase of this log.
  PhaseDetails& Details(int32_t index);

  // The innermost open phase, or kNoPhase.
  int32_t current() const { return current_; }

  // Reader's side, any thread: entries [0, size()) may be read.
  int32_t size() const { return size_.load(std::memory_order_acquire); }
  const PhaseEntry& Entry(int32_t index) const {
    return const_cast<PhaseLog*>(this)->At(index);
  }

 private:
  // Chunk k holds 64 << k entries, so 24 of them hold 2^30.
  static constexpr int kFirstChunkBits = 6;
  static constexpr int kMaxChunks = 24;
  static constexpr size_t kNameBlockBytes = 4096;
  static constexpr size_t kKeptNames = 64;

  PhaseEntry& At(int32_t index) {
    const uint32_t position =
        static_cast<uint32_t>(index) + (1u << kFirstChunkBits);
    const int log2 = 31 - __builtin_clz(position);
    return chunks_[log2 - kFirstChunkBits].load(
        std::memory_order_relaxed)[position - (1u << log2)];
  }

  // Returns a copy of `name`. A name that comes from the same place as before,
  // as a literal does, is compared instead of copied again.
  const char* KeepName(absl::string_view name) {
    const auto address = reinterpret_cast<uintptr_t>(name.data());
    absl::string_view& kept =
        kept_names_[(address >> 3 ^ address >> 9) % kKeptNames];
    if (kept.size() != name.size() ||
        std::memcmp(kept.data(), name.data(), name.size()) != 0) {
      kept = CopyName(name);
    }
    return kept.data();
  }

  absl::string_view CopyName(absl::string_view name);
  void AddChunk();

  const Clock& clock_;
  const std::function<void()>* const synchronize_;
  PhaseEntry* next_ = nullptr;
  PhaseEntry* chunk_end_ = nullptr;
  char* next_name_ = nullptr;
  size_t name_room_ = 0;
  int32_t current_ = kNoPhase;
  int num_chunks_ = 0;
  std::atomic<int32_t> size_ = 0;
  std::array<std::atomic<PhaseEntry*>, kMaxChunks> chunks_ = {};
  std::array<absl::string_view, kKeptNames> kept_names_ = {};
  std::vector<std::unique_ptr<char[]>> name_blocks_;
};

// What ScopedPhase does rarely; apart from it, so that its members need not be
// in memory. Each acts on an open phase of `log`.
void FailPhase(PhaseLog& log, int32_t index, const absl::Status& status);
void FailPhaseByException(PhaseLog& log, int32_t index);
void SetPhaseAttribute(PhaseLog& log, int32_t index, absl::string_view name,
                       decltype(PhaseAttribute::value) value);

// The log that this thread's phases go to; null when nothing collects.
inline constinit thread_local PhaseLog* current_phase_log = nullptr;

}  // namespace firstframe::internal

#endif  // LIB_PHASE_PHASE_LOG_H_
