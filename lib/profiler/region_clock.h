// When any collected region was open: what decides whether an event belongs.

#ifndef LIB_PROFILER_REGION_CLOCK_H_
#define LIB_PROFILER_REGION_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace firstframe {

// The union, over all threads, of the times between Open and Close.
// Thread-safe.
class RegionClock {
 public:
  // Counts one more open region from `time_ns` on. Returns whether it is the
  // only one.
  bool Open(int64_t time_ns) {
    absl::MutexLock lock(&mutex_);
    if (depth_++ > 0) return false;
    intervals_.emplace_back(time_ns, INT64_MAX);
    return true;
  }

  // Ends one. Returns whether it was the last.
  bool Close(int64_t time_ns) {
    absl::MutexLock lock(&mutex_);
    if (depth_ == 0 || --depth_ > 0) return false;
    intervals_.back().second = time_ns;
    return true;
  }

  // Returns whether a region was open at `time_ns`.
  bool Contains(int64_t time_ns) const {
    absl::MutexLock lock(&mutex_);
    const auto after =
        std::upper_bound(intervals_.begin(), intervals_.end(), time_ns,
                         [](int64_t time, const auto& interval) {
                           return time < interval.first;
                         });
    return after != intervals_.begin() && time_ns < (after - 1)->second;
  }

  bool is_open() const {
    absl::MutexLock lock(&mutex_);
    return depth_ > 0;
  }

 private:
  mutable absl::Mutex mutex_;
  int64_t depth_ ABSL_GUARDED_BY(mutex_) = 0;
  // Start and end, in order; the last one's end is open while depth_ > 0.
  std::vector<std::pair<int64_t, int64_t>> intervals_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_PROFILER_REGION_CLOCK_H_
