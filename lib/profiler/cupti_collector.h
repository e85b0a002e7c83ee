// Collects what CUPTI's activity interface records: kernels, copies, memsets,
// API calls that launch or wait, and CUPTI's own overhead.

#ifndef LIB_PROFILER_CUPTI_COLLECTOR_H_
#define LIB_PROFILER_CUPTI_COLLECTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "lib/profiler/cupti_api.h"

namespace firstframe {

// Takes decoded records, inside CuptiCollector::Drain and Stop. Views last
// until the call returns; times are nanoseconds of CLOCK_MONOTONIC.
class CuptiSink {
 public:
  virtual ~CuptiSink() = default;
  // What the thread had pushed at the call that the next OnApi has, if that is
  // recorded at all.
  virtual void OnExternal(const cupti::ExternalRecord& record) = 0;
  virtual void OnApi(const cupti::ApiRecord& record, absl::string_view name,
                     bool is_driver) = 0;
  // Mangled name.
  virtual void OnKernel(const cupti::KernelRecord& record) = 0;
  virtual void OnMemcpy(const cupti::MemcpyRecord& record) = 0;
  virtual void OnMemset(const cupti::MemsetRecord& record) = 0;
  virtual void OnOverhead(const cupti::OverheadRecord& record) = 0;
};

// Takes API calls as they are made, on the thread that makes them, which costs
// less than CUPTI's own records of them (docs/benchmarks.md). Thread-safe.
class CuptiCallHandler {
 public:
  virtual ~CuptiCallHandler() = default;
  // Returns what OnCallExit of the same call is given.
  virtual int64_t OnCallEnter() = 0;
  // `function`: see CuptiCollector::FunctionOf.
  virtual void OnCallExit(int64_t entered, uint32_t function,
                          uint32_t correlation) = 0;
};

struct CuptiOptions {
  // Host memory lent to CUPTI and not decoded yet; past it, records are
  // dropped.
  size_t max_host_bytes = 64 << 20;
  // Device memory for records, in all contexts together: CUPTI's buffers are in
  // VRAM since 12.0u1 and a large model may need it.
  size_t max_device_bytes = 64 << 20;
  // Hold CUPTI against other tools. Not doing so saves a part of a microsecond
  // on every CUDA call, but another tool may then take our records.
  bool subscribe = true;
  // Takes API calls in place of CuptiSink::OnApi, where CUPTI is held.
  CuptiCallHandler* calls = nullptr;
  // Let calls carry what PushExternal was given; OnApi's alone.
  bool external_correlation = true;
  // API calls beside those that launch, copy or wait.
  bool all_api_calls = false;
};

// One per process: CUPTI's callbacks carry no context. Thread-safe.
class CuptiCollector {
 public:
  // More callback ids than any CUPTI 12 or 13 has; names end earlier.
  static constexpr uint32_t kMaxCallbackId = 1024;

  // Subscribes, so that nobody else can take the records away. Unavailable with
  // the other tool's name when CUPTI is taken.
  static absl::StatusOr<std::unique_ptr<CuptiCollector>> Create(
      const CuptiApi& api, const CuptiOptions& options, CuptiSink* sink);
  ~CuptiCollector();

  // Starts and stops recording; the first start in a process takes some ms.
  absl::Status Enable();
  void Disable();
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }

  // The name of a function that OnCallExit told of, without its version, and
  // what CUPTI calls it by.
  struct Function {
    std::string name;
    uint32_t cbid;
    bool is_driver;
  };
  Function FunctionOf(uint32_t function) const;

  // Until the thread's next PopExternal its calls carry `id`. Returns whether
  // they do: then PopExternal is to be called, on the same thread.
  bool PushExternal(uint64_t id);
  void PopExternal();

  // Asks CUPTI for what is complete; `forced` also for what is not (at the
  // end).
  void Flush(bool forced);

  // Decodes the buffers that CUPTI has delivered since the last call. CUPTI may
  // deliver on the program's threads, which only hand the buffers over. From
  // one thread.
  void Drain();

  // Disables, flushes and drains all, unsubscribes. No record comes afterwards.
  // Destroy the collector only once CUPTI has returned every buffer, or never.
  void Stop();

  int64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  int64_t buffer_count() const { return buffers_.load(); }

 private:
  CuptiCollector(const CuptiApi& api, const CuptiOptions& options,
                 CuptiSink* sink)
      : api_(api), options_(options), sink_(sink) {}

  static void Requested(uint8_t** buffer, size_t* size, size_t* max_records);
  static void Completed(void* context, uint32_t stream, uint8_t* buffer,
                        size_t size, size_t valid_size);
  static CuptiCollector* instance_;
  static std::atomic<uint32_t> switched_on_;  // how often callbacks were
  static void OnCallback(void* self, int domain, uint32_t cbid,
                         const void* data);

  absl::Status Subscribe();
  // Whether calls come to options_.calls.
  bool takes_callbacks() const { return !functions_.empty(); }
  void FindFunctions();
  void SwitchCallbacks(bool on);
  absl::string_view ApiName(int domain, uint32_t cbid);
  void Decode(uint8_t* buffer, size_t size);
  void DecodeOne(void* record);
  // Reads CUPTI's clock beside ours.
  void Calibrate();
  uint64_t ToMonotonic(uint64_t time) const {
    return time == 0 ? 0 : time + static_cast<uint64_t>(offset_ns_.load());
  }
  // Copies a record, with its times in our clock.
  template <typename Record>
  Record Shifted(const void* record) const {
    Record copy = *static_cast<const Record*>(record);
    copy.start = ToMonotonic(copy.start);
    copy.end = ToMonotonic(copy.end);
    return copy;
  }
  uint8_t* TakeBuffer();
  void ReturnBuffer(uint8_t* buffer);

  const CuptiApi api_;
  const CuptiOptions options_;
  CuptiSink* const sink_;
  void* subscriber_ = nullptr;
  std::vector<uint32_t> functions_;  // that callbacks come for
  std::atomic<bool> enabled_ = false;
  std::atomic<bool> stopped_ = false;
  std::atomic<int64_t> dropped_ = 0;
  std::atomic<int64_t> buffers_ = 0;
  std::atomic<int64_t> offset_ns_ = 0;  // CLOCK_MONOTONIC less CUPTI's clock
  absl::Mutex pool_mutex_;
  std::vector<uint8_t*> free_ ABSL_GUARDED_BY(pool_mutex_);
  size_t lent_ ABSL_GUARDED_BY(pool_mutex_) = 0;
  struct Filled {
    uint8_t* buffer;
    size_t size;
  };
  std::vector<Filled> filled_ ABSL_GUARDED_BY(pool_mutex_);  // not decoded yet
  absl::Mutex sink_mutex_;
  std::vector<std::string> names_[2] ABSL_GUARDED_BY(sink_mutex_);
};

// Whether an API call launches, copies, fills, waits or allocates: what a
// timeline needs. The rest (cudaGetDevice and the like) is many times more.
bool IsInterestingApiCall(absl::string_view name);

// The name that readers of traces know a callback's function by:
// "__cudaLaunchKernel_ptsz_v13000" is cudaLaunchKernel.
std::string ApiCallName(absl::string_view callback_name);

}  // namespace firstframe

#endif  // LIB_PROFILER_CUPTI_COLLECTOR_H_
