// GPU time of regions by CUDA events: what is left to measure with when another
// tool holds CUPTI.
//
// An event on the default stream at a region's start and one at its end bound
// the work that the default stream and the streams that wait for it got in
// between. Work of streams made with cudaStreamNonBlocking is not seen, and two
// events cost the program some microseconds an entry.

#ifndef LIB_PROFILER_CUDA_EVENT_TIMER_H_
#define LIB_PROFILER_CUDA_EVENT_TIMER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace firstframe {

// The driver's functions, named in cuda.h; results are CUresult, 0 success.
struct CudaEventApi {
  using Context = void*;
  using Event = void*;
  using Stream = void*;

  int (*get_context)(Context*);
  int (*push_context)(Context);
  int (*pop_context)(Context*);
  int (*get_device)(int*);
  int (*create)(Event*, unsigned flags);
  int (*record)(Event, Stream);
  int (*query)(Event);
  int (*elapsed)(float* milliseconds, Event start, Event end);
  int (*is_capturing)(Stream, int*);
  int (*exchange_capture_mode)(int*);

  // Of the driver that the process has loaded; see complete().
  static CudaEventApi FindLoaded();
  bool complete() const;
};

// Thread-safe but for Collect. Events live as long as the process.
class CudaEventTimer {
 public:
  // At most `max_open` regions are being measured at a time.
  explicit CudaEventTimer(const CudaEventApi& api, size_t max_open = 4096)
      : api_(api), max_open_(max_open) {}

  // Marks the start and the end of entry `region` in the calling thread's
  // context. Without a context, or while a graph is captured, nothing is
  // measured.
  void Begin(uint32_t region, uint32_t name);
  void End(uint32_t region);

  struct Time {
    uint32_t region;
    uint32_t name;
    int device;
    // CLOCK_MONOTONIC; the start at the earliest that it can have been.
    int64_t start_ns;
    int64_t duration_ns;
  };
  // Hands over the regions whose work is done, in the order they ended. From
  // one thread.
  void Collect(absl::FunctionRef<void(const Time&)> take);

  // Regions not measured for want of room, or because the driver refused.
  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Mark {
    CudaEventApi::Event event = nullptr;
    int64_t host_ns = 0;
  };
  struct Pair {
    uint32_t region = 0;
    uint32_t name = 0;
    CudaEventApi::Context context = nullptr;
    int device = 0;
    Mark begin, end;
  };
  // What times of a context count from.
  struct Base {
    CudaEventApi::Event event = nullptr;
    int64_t host_ns = 0;
  };

  // Records an event, unless a graph is being captured.
  bool Record(CudaEventApi::Context context, Mark* mark)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Measure(Pair* pair, Time* time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CudaEventApi api_;
  const size_t max_open_;
  std::atomic<int64_t> dropped_ = 0;
  absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, Pair> open_ ABSL_GUARDED_BY(mutex_);
  std::deque<Pair> ended_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<CudaEventApi::Context, Base> bases_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<CudaEventApi::Context, std::vector<CudaEventApi::Event>>
      free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace firstframe

#endif  // LIB_PROFILER_CUDA_EVENT_TIMER_H_
