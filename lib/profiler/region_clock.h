// Which collected region was open when: what decides whether a launch belongs,
// and to which region.

#ifndef LIB_PROFILER_REGION_CLOCK_H_
#define LIB_PROFILER_REGION_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"

namespace firstframe {

// The regions open at each moment of the last kMaxChanges openings and
// closings, over all threads. A region is a number of one entry into it, from
// 1; a thread is the kernel's id. Thread-safe.
class RegionClock {
 public:
  // Marks `region` as entered by `tid` at `time_ns`.
  void Open(int64_t time_ns, uint32_t region, int64_t tid) {
    absl::MutexLock lock(&mutex_);
    open_.push_back({region, tid});
    Append(time_ns);
  }

  // Marks it as left; on any thread. A region that is not open is ignored.
  void Close(int64_t time_ns, uint32_t region) {
    absl::MutexLock lock(&mutex_);
    for (auto it = open_.rbegin(); it != open_.rend(); ++it) {
      if (it->region != region) continue;
      open_.erase(open_.begin() + (&*it - open_.data()));
      Append(time_ns);
      return;
    }
  }

  // The region that a call made by `tid` at `time_ns` is in: the innermost one
  // that this thread entered, else the one entered last by anybody (autograd
  // launches on a thread of its own). 0: none was open.
  uint32_t RegionAt(int64_t time_ns, int64_t tid) const {
    absl::MutexLock lock(&mutex_);
    const auto after = std::upper_bound(
        changes_.begin(), changes_.end(), time_ns,
        [](int64_t time, const Change& change) { return time < change.time; });
    if (after == changes_.begin()) return 0;
    const Entries& open = (after - 1)->open;
    for (auto it = open.rbegin(); it != open.rend(); ++it) {
      if (it->tid == tid) return it->region;
    }
    return open.empty() ? 0 : open.back().region;
  }

  // The region that was entered last and is open, or 0.
  uint32_t last_open() const {
    return last_open_.load(std::memory_order_relaxed);
  }

  // Launches are looked up some seconds after they were made at the latest.
  static constexpr size_t kMaxChanges = size_t{1} << 18;

 private:
  struct Entry {
    uint32_t region;
    int64_t tid;
  };
  using Entries = absl::InlinedVector<Entry, 2>;
  struct Change {
    int64_t time;
    Entries open;  // from here on
  };

  // Two threads' times may come in the other order than their calls.
  void Append(int64_t time_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    last_open_.store(open_.empty() ? 0 : open_.back().region,
                     std::memory_order_relaxed);
    if (!changes_.empty()) time_ns = std::max(time_ns, changes_.back().time);
    changes_.push_back({time_ns, open_});
    if (changes_.size() > kMaxChanges) changes_.pop_front();
  }

  mutable absl::Mutex mutex_;
  std::atomic<uint32_t> last_open_ = 0;
  Entries open_ ABSL_GUARDED_BY(mutex_);
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_PROFILER_REGION_CLOCK_H_
