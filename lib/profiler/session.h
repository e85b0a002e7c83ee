// One profiling session of one process: regions, spans, a device's work, a
// file.
//
// A session is started once and lives until the process ends; Stop() finishes
// its file. Everything that can fail while the program runs is noted in
// messages() and switches collection off or down: a session never throws,
// blocks or ends the program it measures.

#ifndef LIB_PROFILER_SESSION_H_
#define LIB_PROFILER_SESSION_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/cuda/dynamic_library.h"
#include "lib/profiler/cuda_event_timer.h"
#include "lib/profiler/cupti_collector.h"
#include "lib/profiler/region_clock.h"
#include "lib/profiler/span_buffer.h"
#include "lib/profiler/tick_clock.h"
#include "lib/profiler/trace_stream.h"
#include "lib/regions/region_selection.h"

namespace firstframe {

struct SessionOptions {
  std::string dir;          // of the files; made when it is not there
  RegionSelection regions;  // what to collect
  bool all = false;         // collect everything, in regions or not
  int rank = 0;
  int world_size = 1;
  int64_t max_bytes = int64_t{4} << 30;          // of the trace file
  int64_t max_device_bytes = int64_t{64} << 20;  // of device memory
  double max_seconds = 0;                        // of collection; 0: no limit
  bool collect_gpu = true;
  bool hold_cupti = true;  // CuptiOptions::subscribe
  // Take API calls by callbacks, at less than CUPTI's records of them cost;
  // needs hold_cupti.
  bool call_callbacks = true;
  // Write what a region recorded when it ends: the process may end without
  // calling Stop.
  bool write_through = false;
  cuda::LibrarySearch cupti_search = {};
  // Called once CUPTI is loaded. A handler that std::atexit is given here runs
  // before CUPTI's own, when Stop() can still ask it for its records.
  void (*on_attach)() = nullptr;
};

// Thread-safe unless said otherwise.
class Session : private CuptiCallHandler {
 public:
  static absl::StatusOr<std::unique_ptr<Session>> Start(SessionOptions options);
  ~Session() override;

  // A number for a name, and whether entering it collects.
  struct Name {
    uint32_t id = 0;
    bool selected = false;
  };
  Name Intern(absl::string_view name);

  // One entry into a range, from Enter to Exit.
  struct Open {
    int64_t start = 0;    // ticks; 0: not recorded
    uint32_t region = 0;  // number of the entry, for a selected name
    bool pushed = false;  // CUPTI tells this thread's calls by `region`
    bool may_move = false;
    uint32_t outer = 0;  // the region that the thread is in again after it
  };

  // Marks a region as entered, or left. For a selected name, collection is on
  // in between. `may_move`: it may be left on another thread.
  Open Enter(Name name, bool may_move = false);
  void Exit(Name name, const Open& open);

  // Records a span of a name that is not selected, while collection is on.
  bool collecting() const {
    return options_.all || depth_.load(std::memory_order_relaxed) > 0;
  }
  int64_t Now() const { return clock_.Now(); }
  void AddSpan(uint32_t id, int64_t start) {
    spans_.Add({start, clock_.Now(), id, 0});
  }

  // To be called once the driver is there (inside cuInit, from the injection's
  // entry): from the first region on, its work is recorded. When somebody else
  // holds CUPTI by then, says who and goes on with spans, and with GPU times of
  // regions by CUDA events.
  void ArmGpu();

  // Finishes the file, writes META beside it. Idempotent. With `in_child`
  // (after a fork) only lets go: the file is the parent's.
  void Stop();

  // Nothing is recorded from here on; for a forked child.
  void Abandon();

  // Warnings and what happened, one sentence each.
  std::vector<std::string> messages() const;
  const std::string& stem() const { return stem_; }

 private:
  struct RegionTotals {
    int64_t count = 0;
    int64_t total_ns = 0;
    // Of the device, by CUDA events; without CUPTI.
    int64_t event_count = 0;
    int64_t event_ns = 0;
  };

  explicit Session(SessionOptions options);
  int64_t OnCallEnter() override { return clock_.Now(); }
  void OnCallExit(int64_t entered, uint32_t function,
                  uint32_t correlation) override;
  void RunWorker();
  void DrainSpans();
  void AddCall(int64_t tid, const SpanRecord& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(drain_mutex_);
  void DrainEvents();
  void Say(std::string message);
  // Returns when collection is on, at or after `tick`.
  int64_t StartCollection(int64_t tick);
  void EndCollection(int64_t tick);
  void DisarmWhenIdle();
  void EnableGpu() ABSL_EXCLUSIVE_LOCKS_REQUIRED(arm_mutex_);
  void StepDown(const absl::Status& why);
  absl::Status AttachGpu() ABSL_EXCLUSIVE_LOCKS_REQUIRED(arm_mutex_);
  // Called by one thread at a time.
  void WriteMeta(bool finished);
  void MeasureSpanCost();

  // The innermost region that the thread has entered, and not left.
  static thread_local uint32_t thread_region_;

  const SessionOptions options_;
  TickClock clock_;
  std::string stem_;
  RegionClock region_clock_;
  SpanRecorder spans_;
  std::unique_ptr<TraceStream> stream_;
  std::unique_ptr<CuptiCollector> cupti_;
  // cupti_, once it is attached; never null again.
  std::atomic<CuptiCollector*> armed_ = nullptr;
  std::unique_ptr<CudaEventTimer> event_timer_;
  std::atomic<CudaEventTimer*> timer_ = nullptr;  // without CUPTI
  std::atomic<bool> driver_is_there_ = false;
  bool gpu_failed_ = false;
  std::atomic<int> depth_ = 0;
  std::atomic<uint32_t> last_region_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> over_time_ = false;
  std::atomic<int64_t> last_close_ns_ = 0;
  int64_t start_ns_ = 0;
  double span_cost_ns_ = 0;
  std::string device_properties_;  // WriteMeta's
  std::atomic<int64_t> worker_cpu_ns_ = 0;
  std::atomic<int64_t> enable_ns_ = 0;

  absl::Mutex drain_mutex_;  // taken before mutex_
  absl::flat_hash_map<uint32_t, CuptiCollector::Function> functions_
      ABSL_GUARDED_BY(drain_mutex_);
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Name> names_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> span_names_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> is_region_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, RegionTotals> totals_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> messages_ ABSL_GUARDED_BY(mutex_);
  std::string cupti_state_ ABSL_GUARDED_BY(mutex_) = "not needed";
  absl::Mutex arm_mutex_;  // held while CUPTI is switched on or off
  const uint32_t enable_name_;
  const uint32_t disable_name_;
  absl::Mutex worker_mutex_;
  bool wake_ ABSL_GUARDED_BY(worker_mutex_) = false;
  std::thread worker_;
  bool stopped_ = false;
};

}  // namespace firstframe

#endif  // LIB_PROFILER_SESSION_H_
